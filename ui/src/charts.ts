import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { bars, stacks } from "./bars";
import { curves, load } from "./lines";
import type { Chart, Data } from "./model";
import { forest } from "./forest";
import { walkable } from "./keys";
import { pairs } from "./pairs";
import { scatter } from "./scatter";
import { slopes } from "./slopes";
import { type State, shows } from "./state";
import { type Theme, theme } from "./theme";

echarts.use([
  BarChart, CustomChart, LineChart, ScatterChart,
  DataZoomComponent, GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent, SVGRenderer,
]);

// visible is the chart with the contenders that the filter shows.
export function visible(chart: Chart, state: State): Chart {
  const keep = (of: { c: number; name?: string }) => of.name !== undefined || shows(state, "c", of.c);
  switch (chart.kind) {
    case "bars":
    case "forest":
      return { ...chart, rows: chart.rows.filter(keep) };
    case "curves":
    case "load":
    case "slopes":
      return { ...chart, series: chart.series.filter(keep) };
    case "pairs":
      return { ...chart, pairs: chart.pairs.filter(keep) };
    case "scatter":
      return { ...chart, points: chart.points.filter(keep) };
    case "stacks":
      return { ...chart, stacks: chart.stacks.filter(keep) };
  }
}

function option(chart: Chart, data: Data, t: Theme, width: number): [number, object] {
  switch (chart.kind) {
    case "bars":
      return bars(chart, data, t, width);
    case "curves":
      return curves(chart, data, t, width);
    case "forest":
      return forest(chart, data, t, width);
    case "slopes":
      return slopes(chart, data, t, width);
    case "load":
      return load(chart, data, t, width);
    case "pairs":
      return pairs(chart, data, t, width);
    case "scatter":
      return scatter(chart, data, t, width);
    case "stacks":
      return stacks(chart, data, t, width);
  }
}

// draw draws a chart; off are entries of its legend that are switched off, and toggled is
// told of a click on one.
export function draw(element: HTMLElement, chart: Chart, data: Data, off: Set<string>, toggled: (off: Set<string>) => void): void {
  const t = theme();
  const [height, chosen] = option(chart, data, t, element.clientWidth);
  const legend = (chosen as { legend?: { selected?: Record<string, boolean> } }).legend;
  if (legend) legend.selected = Object.fromEntries([...off].map((name) => [name, false]));
  const instance = paint(element, t, height, chosen);
  instance.off("legendselectchanged");
  instance.on("legendselectchanged", (e) => {
    const selected = (e as { selected: Record<string, boolean> }).selected;
    const next = new Set([...off].filter((name) => !(name in selected)));
    for (const [name, on] of Object.entries(selected)) if (!on) next.add(name);
    toggled(next);
  });
  drawn.set(element, (chosen as { series: Drawn[] }).series);
  for (const [event, type] of [["mouseover", "highlight"], ["mouseout", "downplay"]]) {
    instance.off(event);
    instance.on(event, (e) => {
      const { seriesName, name } = e as { seriesName?: string; name?: string };
      lift(type, seriesName && !seriesName.startsWith("series\0") ? seriesName : name); // not a name that ECharts gave
    });
  }
  walkable(element, instance);
}

// Drawn is a series of a chart: a line is a contender, of bars and dots each is one.
interface Drawn {
  name?: string;
  data?: { name?: string }[];
}

const drawn = new WeakMap<HTMLElement, Drawn[]>();

// lift lifts whom the pointer is on in every chart that has them.
function lift(type: string, who?: string): void {
  if (!who) return;
  for (const element of document.querySelectorAll<HTMLElement>(".chart")) {
    drawn.get(element)?.forEach((series, seriesIndex) => {
      const dataIndex = series.data?.findIndex((d) => d?.name === who) ?? -1;
      const what = dataIndex < 0 ? { seriesIndex } : { seriesIndex, dataIndex };
      if (dataIndex >= 0 || series.name === who) echarts.getInstanceByDom(element)?.dispatchAction({ type, ...what });
    });
  }
}

// paint draws an option at the element's width and the given height.
export function paint(element: HTMLElement, t: Theme, height: number, chosen: object): echarts.ECharts {
  const width = element.clientWidth;
  element.style.height = `${height}px`;
  const instance = echarts.getInstanceByDom(element) ?? echarts.init(element, null, { renderer: "svg" });
  instance.resize({ width, height });
  instance.setOption(
    {
      animation: false,
      textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: t.ink },
      ...chosen,
    },
    { notMerge: true },
  );
  element.querySelector("svg")?.setAttribute("viewBox", `0 0 ${width} ${height}`); // lets print scale it
  return instance;
}

export function together(instances: echarts.ECharts[]): void {
  echarts.connect(instances);
}

export function forget(element: HTMLElement): void {
  echarts.getInstanceByDom(element)?.dispose();
}
