import { draw, visible } from "./charts";
import { drawDecision } from "./decision";
import { addExports, chartRows } from "./figures";
import { hide, setUp, show } from "./filter";
import { follow } from "./live";
import type { Chart, Data, Traces } from "./model";
import { setUpCards } from "./cards";
import { openFirst, setUpResults } from "./results";
import { setUpSorting } from "./sort";
import { format, parse, type State } from "./state";
import { showTraces } from "./traces";

// unpack is the page's loader's: the text of what an element holds as gzip in base64.
declare const unpack: (id: string) => Promise<string>;
const json = async (id: string) => JSON.parse(await unpack(id));

let data: Data;
let charts: Map<string, Chart>;
let traces: Promise<Traces> | null; // unpacked when it is first looked at: it can be large
let state: State;
let stale = new Set<Element>(); // charts whose drawing is not what the state asks for
let printing = false;

const seen = new IntersectionObserver(
  (entries) => {
    for (const e of entries) if (e.isIntersecting && stale.has(e.target)) drawOne(e.target as HTMLElement);
  },
  { rootMargin: "300px" },
);

function drawOne(element: HTMLElement): void {
  stale.delete(element);
  const chart = charts.get(element.id);
  if (chart) {
    draw(element, visible(chart, state), data, state.off, (off) => remember({ ...state, off }));
    addExports(element.closest("figure")!, () => title(element), () => chartRows(visible(chart, state), data), data.run);
  } else if (element.id === "chart-decision" && data.decision) {
    const decision = data.decision;
    drawDecision(element, decision, data);
    addExports(element.closest("figure")!, () => title(element), () => [
      ["need", "contender"],
      ...decision.questions.map((q) => [q.words, data.contenders[q.take]]),
      ["else", data.contenders[decision.else]],
    ], data.run);
  }
}

function title(element: HTMLElement): string {
  return element.closest("figure")?.querySelector("figcaption b")?.textContent ?? "figure";
}

// refresh makes the page show the state.
function refresh(): void {
  const views = [...document.querySelectorAll<HTMLElement>("section.view")];
  const current = views.find((v) => v.id === state.view) ?? views[0];
  for (const v of views) v.hidden = v !== current && !printing;
  for (const link of document.querySelectorAll<HTMLAnchorElement>("nav.views a")) {
    const view = link.hash.slice(1).split("?")[0];
    link.href = format(state, data, view);
    if (view === current.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  hide(state);
  show(state);
  if (current.id === "results") openFirst();
  redraw();
}

function redraw(): void {
  seen.disconnect();
  stale = new Set(document.querySelectorAll("figure .chart[id]"));
  for (const element of stale) {
    if (printing) {
      if ((element as HTMLElement).offsetParent) drawOne(element as HTMLElement);
    } else seen.observe(element);
  }
  const view = document.getElementById("seconds");
  if (view && !view.hidden && !printing) {
    void unpackTraces().then((all) => showTraces(data, all, state, (rest) => go({ ...state, rest })));
  }
}

function unpackTraces(): Promise<Traces> {
  traces ??= json("trace-data");
  return traces;
}

function go(next: State): void {
  state = next;
  history.replaceState(null, "", format(state, data));
  refresh();
}

// remember keeps in the address what a chart has already drawn.
function remember(next: State): void {
  state = next;
  history.replaceState(null, "", format(state, data));
  for (const element of document.querySelectorAll<HTMLElement>("figure .chart[id]")) if (!onScreen(element)) stale.add(element);
  for (const link of document.querySelectorAll<HTMLAnchorElement>("nav.views a")) link.href = format(state, data, link.hash.slice(1).split("?")[0]);
}

function onScreen(element: HTMLElement): boolean {
  const box = element.getBoundingClientRect();
  return element.offsetParent !== null && box.bottom > 0 && box.top < innerHeight;
}

// begin reads the page's data, at first and when a live page is renewed.
async function begin(): Promise<void> {
  data = await json("data");
  charts = new Map(data.charts.map((c) => [c.id, c]));
  traces = null;
  state = parse(location.hash, data);
  setUp(data, (shown) => go({ ...state, shown }));
  setUpResults(data, () => (setUpCards(), hide(state)));
  setUpSorting();
  setUpCards();
  refresh();
}

// listen makes the page answer to its address, its width, the system's colours and paper.
function listen(): void {
  addEventListener("hashchange", () => {
    state = parse(location.hash, data);
    refresh();
    if (state.view) scrollTo({ top: 0 });
  });
  let width = document.body.clientWidth;
  new ResizeObserver(() => {
    // Heights follow from the charts themselves; only a new width matters.
    if (document.body.clientWidth !== width) {
      width = document.body.clientWidth;
      requestAnimationFrame(redraw); // which changes heights: not within the observer
    }
  }).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is white, and has room for every view: the light palette and all of
  // them while printing, whatever the screen has.
  addEventListener("beforeprint", () => {
    printing = true;
    document.documentElement.dataset.theme = "light";
    refresh();
  });
  addEventListener("afterprint", () => {
    printing = false;
    delete document.documentElement.dataset.theme;
    refresh();
  });
}

history.scrollRestoration = "manual"; // an address names a view, which begins at its top
addEventListener("load", () => scrollTo({ top: 0 }));
void begin().then(() => {
  listen();
  scrollTo({ top: 0 });
  document.body.dataset.script = ""; // the tabs say what is shown: headings are for paper
  if (document.body.dataset.live) follow(begin);
});
