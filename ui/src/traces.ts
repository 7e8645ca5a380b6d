// What the nodes did second by second, one sample at a time: the charts of all
// nodes zoom together.
import { forget, paint, together } from "./charts";
import { valueAxis } from "./axes";
import { make, table } from "./dom";
import { addExports, type Cell } from "./figures";
import { scale, tick, words } from "./format";
import type { Data, Node, Trace, Traces } from "./model";
import { shows, type State } from "./state";
import { modeColor, modes, seriesColor, theme, type Theme, tooltip } from "./theme";

type Values = (number | null)[];

interface Plot {
  title: string;
  unit: string;
  stacked?: boolean;
  max?: number;
  lines: { name: string; color: number; values: Values }[];
}

function plots(n: Node): Plot[] {
  const cpu = n.cpu ?? {};
  const loads = n.loads ?? {};
  const known = [...modes.filter((m) => m in cpu), ...Object.keys(cpu).filter((m) => !modes.includes(m)).sort()];
  const line = (name: string, color: number, values: Values | undefined) => (values?.length ? [{ name, color, values }] : []);
  return [
    { title: "CPU by mode", unit: "CPU-s/s", stacked: true, lines: known.flatMap((m, i) => (cpu[m].some((v) => v) ? line(m, i + 1, cpu[m]) : [])) },
    { title: "Network", unit: "bit/s", lines: [...line("received", 1, n.receive), ...line("sent", 2, n.transmit)] },
    { title: "TCP retransmits", unit: "1/s", lines: line("retransmits", 2, n.retransmits) },
    { title: "Load of each CPU", unit: "1", max: 1, lines: Object.keys(loads).sort((a, b) => Number(a) - Number(b)).flatMap((name, i) => line(`CPU ${name}`, i + 1, loads[name])) },
    { title: "Busiest CPU", unit: "1", max: 1, lines: line("not idle", 3, n.busiest) },
    { title: "Memory used", unit: "bytes", lines: line("used", 4, n.memory) },
  ].filter((p) => p.lines.length > 0);
}

// zoom is the part of a recording that is looked at, in percent: it outlives a
// renewal of the page and another drawing.
let zoom = { of: "", start: 0, end: 100 };

// showTraces draws the recording that the state names, or the first that the filter
// shows; choose is told of another choice.
export function showTraces(data: Data, traces: Traces, state: State, choose: (rest: URLSearchParams) => void): void {
  const place = document.getElementById("traces");
  if (!place) return;
  for (const old of place.querySelectorAll<HTMLElement>(".chart")) forget(old);
  const list = traces.list.filter((t) => shows(state, "c", t.c) && shows(state, "s", t.s) && shows(state, "g", t.g));
  if (list.length === 0) {
    place.replaceChildren(make("p", {}, "The filter leaves no recording."));
    return;
  }
  const trace = chosen(list, data, state.rest);
  const options: [keyof Trace & ("c" | "s" | "g" | "round"), string, (t: Trace) => string][] = [
    ["c", "Contender", (t) => data.contenders[t.c] ?? "?"],
    ["s", "Step", (t) => data.steps[t.s] ?? "?"],
    ["g", "Kernel and underlay", (t) => data.groups[t.g] ?? "?"],
    ["round", "Round", (t) => String(t.round)],
  ];
  const wishOf = (of: Trace) => new URLSearchParams(options.map(([k, , text]) => [`t.${k}`, text(of)]));
  const bar = make("p", { class: "choose" });
  for (const [key, label, name] of options) {
    const names = new Map(list.map((t) => [t[key], name(t)]));
    if (key === "g" && names.size < 2) continue;
    const select = make("select", { id: `trace-${key}` }, ...[...names.values()].map((n) => make("option", {}, n)));
    select.value = name(trace);
    select.addEventListener("change", () => {
      const wish = chosen(list.filter((other) => name(other) === select.value), data, wishOf(trace));
      choose(wishOf(wish));
      document.getElementById(select.id)?.focus();
    });
    bar.append(make("label", {}, `${label} `, select), " ");
  }
  const t = theme();
  const charts: [HTMLElement, Plot, Node][] = [];
  const columns = trace.nodes.map((node) => {
    const column = make("div", {}, make("h3", {}, node.node), ...turns(node));
    for (const plot of plots(node)) {
      const chart = make("div", { class: "chart", role: "img", "aria-label": `${plot.title} of the ${node.node} by second; the table below it has the figures` });
      const figure = make("figure", { class: "trace" }, make("figcaption", {}, make("b", {}, plot.title), make("span", {}, summary(plot))), chart, figures(plot, node));
      addExports(figure, () => `${data.contenders[trace.c]} ${data.steps[trace.s]} round ${trace.round} ${node.node} ${plot.title}`, () => rows(plot, node), data.run);
      column.append(figure);
      charts.push([chart, plot, node]);
    }
    return column;
  });
  const of = wishOf(trace).toString();
  if (zoom.of !== of) zoom = { of, start: 0, end: 100 };
  place.replaceChildren(bar, zoomButtons((start, end) => instances[0]?.dispatchAction({ type: "dataZoom", start, end })), make("div", { class: "charts" }, ...columns));
  const instances = charts.map(([chart, plot, node], i) => paint(chart, t, i === 0 ? 190 : 165, option(plot, node, t, i === 0)));
  together(instances);
  instances[0]?.on("datazoom", () => {
    const [{ start, end }] = instances[0].getOption().dataZoom as { start: number; end: number }[];
    zoom = { of, start, end };
  });
}

// zoomButtons do for the keyboard what wheel and handles do for the mouse.
function zoomButtons(look: (start: number, end: number) => void): HTMLElement {
  const move = (times: number, along: number) => () => {
    const width = Math.min(100, Math.max(1, times * (zoom.end - zoom.start)));
    const middle = (zoom.start + zoom.end) / 2 + along * width;
    const start = Math.min(100 - width, Math.max(0, middle - width / 2));
    look(start, start + width);
  };
  const group = make("p", { class: "choose", role: "group", "aria-label": "Zoom of all charts" });
  for (const [id, text, label, act] of [
    ["in", "+", "Zoom in", move(0.5, 0)], ["out", "−", "Zoom out", move(2, 0)],
    ["earlier", "◂", "Earlier", move(1, -0.25)], ["later", "▸", "Later", move(1, 0.25)], ["reset", "reset", "Show all of it", () => look(0, 100)],
  ] as [string, string, string, () => void][]) {
    const button = make("button", { type: "button", id: `zoom-${id}`, "aria-label": label, title: label }, text);
    button.addEventListener("click", act);
    group.append(button);
  }
  return group;
}

// chosen is the recording nearest to the wish.
function chosen(list: Trace[], data: Data, wish: URLSearchParams): Trace {
  const agrees = (t: Trace) =>
    8 * Number(data.contenders[t.c] === wish.get("t.c")) + 4 * Number(data.steps[t.s] === wish.get("t.s")) +
    2 * Number(data.groups[t.g] === wish.get("t.g")) + Number(String(t.round) === wish.get("t.round"));
  return list.reduce((best, t) => (agrees(t) > agrees(best) ? t : best));
}

// turns says what the curves of a sample in slices are: averages over all turns.
function turns(node: Node): HTMLElement[] {
  if (!node.measured || !(node.window > 0)) return [];
  const share = tick(Math.round(1000 * node.measured / node.window) / 10);
  return [make("p", { class: "legend" }, `Measured by turns: its own slices are ${words(node.measured, "s")} of these ${words(node.window, "s")} (${share} %). Between them other contenders have their turns, so the network's curves lie below the figures of the tables.`)];
}

// summary is the mean and the maximum of each line.
function summary(plot: Plot): string {
  return plot.lines.flatMap((l) => {
    const known = l.values.filter((v) => v !== null);
    if (known.length === 0) return [];
    const mean = known.reduce((sum, v) => sum + v, 0) / known.length;
    return [`${l.name} mean ${words(mean, plot.unit)}, max ${words(Math.max(...known), plot.unit)}`];
  }).join("; ");
}

function rows(plot: Plot, node: Node): Cell[][] {
  return [["seconds", ...plot.lines.map((l) => `${l.name} (${plot.unit})`)], ...node.times.map((s, i) => [s, ...plot.lines.map((l) => l.values[i] ?? null)])];
}

// figures is the table of a plot, made when it is opened.
function figures(plot: Plot, node: Node): HTMLElement {
  const details = make("details", {}, make("summary", {}, "Figures"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    const seconds = node.times.map((s, i) => [tick(s) + " s", ...plot.lines.map((l) => words(l.values[i] ?? null, plot.unit))]);
    details.append(table(`${plot.title} of the ${node.node}`, ["time", ...plot.lines.map((l) => l.name)], seconds));
  });
  return details;
}

// option is the drawing of a plot; the handles that zoom all of them are below
// the first.
function option(plot: Plot, node: Node, t: Theme, first: boolean): object {
  const sums = node.times.map((_, i) => plot.lines.reduce((sum, l) => (plot.stacked ? sum + (l.values[i] ?? 0) : Math.max(sum, l.values[i] ?? 0)), 0));
  const most = plot.max ?? Math.max(...sums, 0);
  const y = valueAxis(t, { label: "", unit: plot.unit }, most || 1, 400);
  const unit = scale(most || 1, plot.unit).unit;
  return {
    grid: { left: 48, right: 14, top: 30, bottom: first ? 52 : 26 },
    legend: { top: 0, right: 0, itemHeight: 8, itemWidth: 14, textStyle: { color: t.ink, fontSize: 12 } },
    xAxis: {
      type: "value", min: Math.min(0, ...node.times), max: Math.max(node.window, ...node.times),
      axisLabel: { color: t.muted, fontSize: 12, formatter: (v: number) => `${tick(v)} s`, hideOverlap: true, showMaxLabel: false },
      axisLine: { lineStyle: { color: t.line } }, axisTick: { show: false }, splitLine: { show: false },
    },
    yAxis: { ...y, name: unit, nameLocation: "end", nameGap: 8, nameTextStyle: { color: t.muted, fontSize: 12, align: "right" } },
    dataZoom: [
      { type: "inside", start: zoom.start, end: zoom.end, zoomOnMouseWheel: "ctrl", filterMode: "none" },
      { type: "slider", start: zoom.start, end: zoom.end, show: first, height: 14, bottom: 6, filterMode: "none", borderColor: t.line, textStyle: { color: t.muted, fontSize: 12 }, labelFormatter: (v: number) => `${tick(v)} s`, showDataShadow: false },
    ],
    tooltip: {
      trigger: "axis",
      ...tooltip(t, (all: any[]) => [`${tick(all[0].value[0])} s`, ...all.map((p) => `${p.seriesName}: ${words(p.value[1], plot.unit)}`)]),
    },
    series: plot.lines.map((l, i) => ({
      type: "line", name: l.name, symbol: node.times.length < 3 ? "circle" : "none", color: plot.stacked ? modeColor(t, l.name) : seriesColor(t, l.color), connectNulls: false,
      lineStyle: { width: plot.stacked ? 0.8 : 1.6 },
      ...(plot.stacked ? { stack: "cpu", areaStyle: { opacity: 0.65 } } : {}),
      ...(i === 0 ? { markArea: { silent: true, itemStyle: { color: t.muted, opacity: 0.1 }, data: [[{ xAxis: 0 }, { xAxis: node.window }]] } } : {}),
      data: node.times.map((s, k) => [s, l.values[k] ?? null]),
    })),
  };
}
