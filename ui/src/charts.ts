import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { LabelLayout } from "echarts/features";
import { SVGRenderer } from "echarts/renderers";
import { nines, tick } from "./format";
import type { Axis, Bars, Chart, Curves, Figure, Scatter } from "./model";

echarts.use([BarChart, CustomChart, LineChart, ScatterChart, GridComponent, LegendComponent, TooltipComponent, LabelLayout, SVGRenderer]);

type Option = Parameters<echarts.ECharts["setOption"]>[0];

// The palette lives in the style sheet, where light, dark and print differ.
interface Theme {
  ink: string;
  muted: string;
  line: string;
  paper: string;
  series: string[]; // 0 is the baseline's
}

function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const series = Array.from({ length: 9 }, (_, i) => color(`--series-${i}`));
  return { ink: color("--ink"), muted: color("--muted"), line: color("--line"), paper: color("--paper"), series };
}

function seriesColor(t: Theme, place: number): string {
  return place === 0 ? t.series[0] : t.series[1 + ((place - 1) % (t.series.length - 1))];
}

// Past the palette's end colours come again with another dash.
function dash(place: number): "solid" | number[] {
  if (place === 0) return [6, 3];
  return ([[], [2, 2], [8, 3, 2, 3]] as number[][])[Math.floor((place - 1) / 8) % 3] || "solid";
}

export function draw(element: HTMLElement, chart: Chart): void {
  const t = theme();
  const width = element.clientWidth;
  const [height, option] = {
    bars: () => bars(chart as Bars, t, width),
    curves: () => curves(chart as Curves, t, width),
    scatter: () => scatter(chart as Scatter, t, width),
  }[chart.kind]();
  element.style.height = `${height}px`;
  const instance = echarts.getInstanceByDom(element) ?? echarts.init(element, null, { renderer: "svg" });
  instance.resize({ width, height });
  instance.setOption(
    {
      animation: false,
      textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: t.ink },
      ...(option as object),
    },
    { notMerge: true },
  );
}

// tooltip builds elements, never markup: names in it come from files.
function tooltip(t: Theme, lines: (params: any) => string[]) {
  return {
    confine: true,
    backgroundColor: t.paper,
    borderColor: t.line,
    textStyle: { color: t.ink, fontSize: 12 },
    formatter: (params: any) => {
      const box = document.createElement("div");
      lines(params).forEach((line, i) => {
        const row = document.createElement(i === 0 ? "strong" : "div");
        row.textContent = line;
        box.append(row);
      });
      return box;
    },
  };
}

function valueAxis(t: Theme, axis: Axis, extra: object = {}) {
  return {
    type: "value",
    name: axis.label,
    nameLocation: "middle",
    nameTextStyle: { color: t.muted, fontSize: 12 },
    axisLabel: { color: t.muted, fontSize: 11, hideOverlap: true, formatter: (v: number) => tick(v, axis.unit) },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: t.line } },
    ...extra,
  };
}

// whisker draws an interval with caps between two data points.
function whisker(color: string, data: number[][], vertical: boolean) {
  return {
    type: "custom",
    silent: true,
    z: 4,
    data,
    encode: vertical ? { x: 0, y: [1, 2] } : { x: [1, 2], y: 0 },
    renderItem: (_: unknown, api: any) => {
      const at = api.value(0);
      const [a, b] = [1, 2].map((i) => api.coord(vertical ? [at, api.value(i)] : [api.value(i), at]) as [number, number]);
      const cap = 4;
      const line = (x1: number, y1: number, x2: number, y2: number) => ({
        type: "line",
        shape: { x1, y1, x2, y2 },
        style: { stroke: color, lineWidth: 1.5, fill: undefined },
      });
      const end = ([x, y]: [number, number]) => (vertical ? line(x - cap, y, x + cap, y) : line(x, y - cap, x, y + cap));
      return { type: "group", children: [line(a[0], a[1], b[0], b[1]), end(a), end(b)] };
    },
  };
}

function bars(chart: Bars, t: Theme, width: number): [number, Option] {
  const rows = chart.rows;
  const name = Math.min(8 + 7 * Math.max(...rows.map((r) => r.name.length)), width * 0.36);
  const mark = 8 + 6.6 * Math.max(...rows.map((r) => r.mark.length));
  const option = {
    grid: { left: name + 8, right: mark + 8, top: 4, bottom: 44 },
    xAxis: valueAxis(t, chart.x, { min: 0, nameGap: 28, splitNumber: width < 500 ? 3 : 6 }),
    yAxis: [
      {
        type: "category",
        inverse: true,
        data: rows.map((r) => r.name),
        axisLine: { lineStyle: { color: t.muted } },
        axisTick: { show: false },
        axisLabel: { color: t.ink, fontSize: 12, width: name, overflow: "truncate", interval: 0 },
      },
      {
        type: "category",
        inverse: true,
        data: rows.map((r) => r.mark),
        axisLine: { show: false },
        axisTick: { show: false },
        axisLabel: { color: t.ink, fontSize: 11, interval: 0 },
      },
    ],
    tooltip: {
      trigger: "item",
      ...tooltip(t, (p) => {
        const row = rows[p.seriesType === "scatter" ? p.value[1] : p.dataIndex];
        return [row.name, row.text, ...row.roundTexts];
      }),
    },
    series: [
      {
        type: "bar",
        barWidth: "58%",
        data: rows.map((r) => ({ value: r.value, itemStyle: { color: seriesColor(t, r.color), opacity: 0.55 } })),
      },
      // An empty series makes the right-hand axis show.
      { type: "bar", yAxisIndex: 1, data: [], silent: true },
      whisker(t.ink, rows.flatMap((r, i) => (r.low === null || r.high === null ? [] : [[i, r.low, r.high]])), false),
      {
        type: "scatter",
        symbolSize: 6,
        z: 3,
        itemStyle: { color: t.paper, borderColor: t.ink, borderWidth: 1 },
        data: rows.flatMap((r, i) => r.rounds.map((v) => [v, i])),
      },
    ],
  };
  return [30 * rows.length + 52, option as Option];
}

function curves(chart: Curves, t: Theme, width: number): [number, Option] {
  const last = Math.max(1, ...chart.series.flatMap((s) => s.points.map((p) => p.nines)));
  const values = chart.series.flatMap((s) => s.points.map((p) => p.value)).filter((v) => v > 0);
  const [low, high] = [round125(Math.min(...values), false), round125(Math.max(...values), true)];
  const legendRows = Math.ceil((chart.series.length * 150) / width);
  const option = {
    grid: { left: 64, right: 16, top: 8 + 22 * legendRows, bottom: 44 },
    legend: { top: 0, left: 56, itemHeight: 8, itemWidth: 22, textStyle: { color: t.ink, fontSize: 12 } },
    xAxis: {
      ...valueAxis(t, { label: "percentile", unit: "" }),
      min: 0,
      max: Math.ceil(last * 10) / 10,
      interval: 1,
      nameGap: 28,
      axisLabel: { color: t.muted, fontSize: 11, showMaxLabel: Number.isInteger(Math.ceil(last * 10) / 10), formatter: nines },
    },
    yAxis: {
      ...valueAxis(t, chart.y),
      type: "log",
      min: low,
      max: high,
      name: "",
      minorTick: { show: false },
      minorSplitLine: { show: true, lineStyle: { color: t.line, opacity: 0.5 } },
    },
    tooltip: { trigger: "item", ...tooltip(t, (p) => [p.seriesName, chart.series[p.seriesIndex].points[p.dataIndex].text]) },
    series: chart.series.map((s) => ({
      type: "line",
      name: s.name,
      color: seriesColor(t, s.color),
      lineStyle: { width: s.color === 0 ? 2.5 : 1.8, type: dash(s.color) },
      symbol: "circle",
      symbolSize: 4,
      emphasis: { focus: "series" },
      data: s.points.map((p) => [p.nines, p.value]),
    })),
  };
  return [Math.max(300, Math.min(420, width * 0.6)) + 22 * legendRows, option as Option];
}

// round125 is the next 1, 2 or 5 times a power of ten at or beyond v.
function round125(v: number, up: boolean): number {
  const power = 10 ** Math.floor(Math.log10(v));
  const steps = [1, 2, 5, 10].map((s) => s * power);
  return up ? steps.find((s) => s >= v * (1 - 1e-9))! : steps.reverse().find((s) => s <= v * (1 + 1e-9))!;
}

function scatter(chart: Scatter, t: Theme, width: number): [number, Option] {
  const points = chart.points;
  const intervals = (axis: "x" | "y") =>
    points.flatMap((p) => {
      const across: Figure = p[axis === "x" ? "y" : "x"];
      const along: Figure = p[axis];
      return along.low === null || along.high === null ? [] : [[across.value, along.low, along.high]];
    });
  const option = {
    grid: { left: 76, right: 24, top: 16, bottom: 44 },
    xAxis: valueAxis(t, chart.x, { nameGap: 28, scale: false, splitNumber: width < 500 ? 3 : 6 }),
    yAxis: valueAxis(t, chart.y, { nameGap: 60 }),
    tooltip: { trigger: "item", ...tooltip(t, (p) => [points[p.dataIndex].name, `${chart.x.label}: ${points[p.dataIndex].x.text}`, `${chart.y.label}: ${points[p.dataIndex].y.text}`]) },
    series: [
      whisker(t.muted, intervals("y"), true),
      whisker(t.muted, intervals("x"), false),
      {
        type: "scatter",
        z: 5,
        symbolSize: 11,
        label: { show: true, position: "right", color: t.ink, fontSize: 12, formatter: (p: any) => points[p.dataIndex].name },
        labelLayout: { moveOverlap: "shiftY" },
        data: points.map((p) => ({ value: [p.x.value, p.y.value], itemStyle: { color: seriesColor(t, p.color) } })),
      },
    ],
  };
  return [Math.max(300, Math.min(420, width * 0.6)), option as Option];
}
