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
    one.addEventListener("toggle", () => {
      if (!one.open || one.querySelector("table")) return;
      one.append(table(rows, data, place.dataset.baseline ?? "the baseline"));
      filled();
    });
    return one;
  });
  place.replaceChildren(...details);
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
