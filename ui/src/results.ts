// Every result, one closed table to each step of each group, filled when it is
// opened: a large run has tens of thousands.
import { make } from "./dom";
import type { Data, ResultRow } from "./model";

export function setUpResults(data: Data, filled: () => void): void {
  const place = document.getElementById("every");
  if (!place) return;
  const parts = new Map<string, ResultRow[]>();
  for (const row of data.results) {
    const key = `${row[0]} ${row[1]}`;
    parts.set(key, [...(parts.get(key) ?? []), row]);
  }
  const details = [...parts].map(([key, rows]) => {
    const [group, step] = key.split(" ").map(Number);
    const group_ = data.groups.length > 1 ? ` · ${data.groups[group]}` : "";
    const one = make("details", { "data-g": String(group), "data-s": String(step) });
    one.append(make("summary", {}, make("b", {}, data.steps[step]), group_));
    fillers.set(one, () => {
      fillers.delete(one);
      one.append(table(rows, data, place.dataset.baseline ?? "the baseline"));
      filled();
    });
    one.addEventListener("toggle", () => one.open && fillers.get(one)?.());
    return one;
  });
  place.replaceChildren(...details);
}

// fillers make the table of a step that was not yet opened.
const fillers = new Map<HTMLDetailsElement, () => void>();

// openFirst opens the first step that the filter shows, where none is open.
export function openFirst(): void {
  const shown = [...document.querySelectorAll<HTMLDetailsElement>("#every > details")].filter((d) => !d.hidden);
  if (shown.length === 0 || shown.some((d) => d.open)) return;
  shown[0].open = true;
  fillers.get(shown[0])?.();
}

function table(rows: ResultRow[], data: Data, baseline: string): HTMLElement {
  const head = ["Contender", "Metric", "Rounds", "Figure", "Interval", `Against ${baseline}`, "p", "Group"];
  const body = make("tbody");
  for (const [, , c, metric, rounds, requests, value, interval, versus, p, letters, standing] of rows) {
    const number = (text: string, extra = "") => make("td", { class: `num ${extra}`.trim() }, text);
    const count = number(String(rounds));
    if (requests) count.append(make("small", {}, `${requests} requests`));
    body.append(
      make("tr", { "data-c": String(c) },
        make("th", { scope: "row" }, make("bdi", {}, data.contenders[c])), make("td", {}, data.metrics[metric]),
        count, number(value), number(interval), number(versus, standing), number(p), number(letters)),
    );
  }
  const top = make("tr", {}, ...head.map((h, i) => make("th", i < 2 ? { scope: "col" } : { scope: "col", class: "num" }, h)));
  return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Every result of ${data.steps[rows[0][1]]}` },
    make("table", {}, make("thead", {}, top), body));
}
