// Tooltips by keyboard: arrows go from point to point of a chart that has the focus, each
// is shown and said; Escape hides it.
import type { ECharts } from "echarts/core";
import { make } from "./dom";

interface Series {
  silent?: boolean;
  type?: string;
  data?: unknown[];
  id?: string;
}

export function walkable(element: HTMLElement, instance: ECharts): void {
  if (element.tabIndex === 0) return; // listens already; the instance stays the same
  element.tabIndex = 0;
  element.setAttribute("aria-keyshortcuts", "ArrowRight ArrowLeft Escape");
  let at = -1;
  element.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (e.key === "Escape") instance.dispatchAction({ type: "hideTip" });
    if (step === undefined) return;
    e.preventDefault();
    const places = points(instance);
    if (places.length === 0) return;
    at = (at + step + places.length) % places.length;
    instance.dispatchAction({ type: "showTip", ...places[at] });
    say(element, [...element.children].at(-1)?.textContent ?? "");
  });
  element.addEventListener("blur", () => instance.dispatchAction({ type: "hideTip" }));
}

// points are what a tooltip can be of, in the order of the series.
function points(instance: ECharts): { seriesIndex: number; dataIndex: number }[] {
  const option = instance.getOption() as { series: Series[]; legend?: { selected?: Record<string, boolean> }[] };
  const off = option.legend?.[0]?.selected ?? {};
  return option.series.flatMap((s, seriesIndex) =>
    s.silent || s.type === "custom" || off[(s as { name?: string }).name ?? ""] === false ? [] : (s.data ?? []).flatMap((v, dataIndex) => (v === null ? [] : [{ seriesIndex, dataIndex }])),
  );
}

function say(element: HTMLElement, words: string): void {
  const figure = element.closest("figure");
  if (!figure) return;
  let said = figure.querySelector<HTMLElement>(".said");
  if (!said) figure.append((said = make("p", { class: "said hidden", role: "status" })));
  said.textContent = words;
}
