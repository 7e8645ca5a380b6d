import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { nines, scale, tick } from "./format";
import type { Axis, Bars, Chart, Curves, Figure, Scatter } from "./model";

echarts.use([BarChart, CustomChart, LineChart, ScatterChart, GridComponent, LegendComponent, TooltipComponent, SVGRenderer]);

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
  element.querySelector("svg")?.setAttribute("viewBox", `0 0 ${width} ${height}`); // lets print scale it
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

// valueAxis starts at zero and carries its unit once, in its name.
function valueAxis(t: Theme, axis: Axis, max: number, width: number, extra: object = {}) {
  const s = scale(max, axis.unit);
  // Ticks at round numbers of the shown unit: binary ones would not be else.
  const step = s.factor * roundUp(max / s.factor / (width < 500 ? 3 : 5));
  return {
    type: "value",
    name: s.unit ? `${axis.label}, ${s.unit}` : axis.label,
    nameLocation: "middle",
    nameTextStyle: { color: t.muted, fontSize: 12 },
    min: 0,
    max: step * Math.ceil(max / step),
    interval: step,
    axisLabel: { color: t.muted, fontSize: 11, formatter: (v: number) => tick(v / s.factor) },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: t.line } },
    ...extra,
  };
}

// roundUp is the next 1, 2 or 5 times a power of ten at or above v.
function roundUp(v: number): number {
  const power = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 5, 10].map((s) => s * power).find((s) => s >= v * (1 - 1e-9))!;
}

function roundDown(v: number): number {
  const power = 10 ** Math.floor(Math.log10(v));
  return [5, 2, 1].map((s) => s * power).find((s) => s <= v * (1 + 1e-9))!;
}

function largest(figures: Figure[]): number {
  return Math.max(...figures.map((f) => Math.max(f.value, f.high ?? 0))) || 1;
}

// whisker draws an interval with caps between two data points.
function whisker(color: string, data: number[][], vertical: boolean) {
  return {
    type: "custom",
    silent: true,
    clip: true,
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
    xAxis: valueAxis(t, chart.x, Math.max(largest(rows), ...rows.flatMap((r) => r.rounds)), width, { nameGap: 28 }),
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
        symbolSize: 5,
        symbolOffset: [0, 7],
        z: 5,
        itemStyle: { color: t.ink, opacity: 0.55 },
        data: rows.flatMap((r, i) => r.rounds.map((v) => [v, i])),
      },
    ],
  };
  return [30 * rows.length + 52, option as Option];
}

function curves(chart: Curves, t: Theme, width: number): [number, Option] {
  const last = Math.ceil(10 * Math.max(1, ...chart.series.flatMap((s) => s.points.map((p) => p.nines))) - 1e-6) / 10;
  const values = chart.series.flatMap((s) => s.points.map((p) => p.value)).filter((v) => v > 0);
  const [low, high] = [roundDown(Math.min(...values)), roundUp(Math.max(...values))];
  const time = (v: number) => {
    const s = scale(v, chart.y.unit);
    return `${tick(v / s.factor)} ${s.unit}`;
  };
  const axis = {
    nameTextStyle: { color: t.muted, fontSize: 12 },
    axisLabel: { color: t.muted, fontSize: 11 },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: t.line } },
  };
  // Legend entries wrap as words do; the grid begins below the last row.
  let [legendRows, used] = [1, 0];
  for (const s of chart.series) {
    const entry = 36 + 6.5 * s.name.length;
    if (used > 0 && used + entry > width - 64) [legendRows, used] = [legendRows + 1, 0];
    used += entry;
  }
  const option = {
    grid: { left: 64, right: 16, top: 8 + 22 * legendRows, bottom: 44 },
    legend: { top: 0, left: 56, itemHeight: 8, itemWidth: 22, textStyle: { color: t.ink, fontSize: 12 } },
    xAxis: {
      ...axis,
      type: "value",
      name: "percentile",
      nameLocation: "middle",
      nameGap: 28,
      min: 0,
      max: last,
      interval: 1,
      axisLabel: { ...axis.axisLabel, showMaxLabel: Number.isInteger(last), formatter: nines },
    },
    yAxis: {
      ...axis,
      type: "log",
      min: low,
      max: high,
      axisLabel: { ...axis.axisLabel, formatter: time },
      minorSplitLine: { show: true, lineStyle: { color: t.line, opacity: 0.45 } },
      minorTick: { show: false, splitNumber: 9 },
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

function scatter(chart: Scatter, t: Theme, width: number): [number, Option] {
  const points = chart.points;
  const intervals = (axis: "x" | "y") =>
    points.flatMap((p) => {
      const across: Figure = p[axis === "x" ? "y" : "x"];
      const along: Figure = p[axis];
      return along.low === null || along.high === null ? [] : [[across.value, along.low, along.high]];
    });
  const height = Math.max(300, Math.min(420, width * 0.6));
  const grid = { left: 60, right: 24, top: 16, bottom: 44 };
  // One wide interval must not press all points into a corner: it runs out of
  // the plot instead, without a cap.
  const extent = (figures: Figure[]) => Math.min(largest(figures), 2.5 * Math.max(...figures.map((f) => f.value)) || Infinity);
  const x = valueAxis(t, chart.x, extent(points.map((p) => p.x)), width, { nameGap: 28 });
  const y = valueAxis(t, chart.y, extent(points.map((p) => p.y)), 500, { nameGap: 40 });
  const labels = placeLabels(
    points.map((p) => ({
      x: grid.left + ((width - grid.left - grid.right) * p.x.value) / x.max,
      y: height - grid.bottom - ((height - grid.top - grid.bottom) * p.y.value) / y.max,
      width: 7 * p.name.length,
    })),
    width,
  );
  const option = {
    grid,
    xAxis: x,
    yAxis: y,
    tooltip: { trigger: "item", ...tooltip(t, (p) => [points[p.dataIndex].name, `${chart.x.label}: ${points[p.dataIndex].x.text}`, `${chart.y.label}: ${points[p.dataIndex].y.text}`]) },
    series: [
      whisker(t.muted, intervals("y"), true),
      whisker(t.muted, intervals("x"), false),
      {
        type: "scatter",
        z: 5,
        symbolSize: 11,
        data: points.map((p, i) => ({
          value: [p.x.value, p.y.value],
          itemStyle: { color: seriesColor(t, p.color) },
          label: {
            show: true,
            formatter: () => p.name,
            color: t.ink,
            fontSize: 12,
            textBorderColor: t.paper,
            textBorderWidth: 3,
            ...labels[i],
          },
        })),
      },
    ],
  };
  return [height, option as Option];
}

// placeLabels puts names beside their points, to the left where the right edge
// is near, and moves one down where it would cover the name above it.
function placeLabels(points: { x: number; y: number; width: number }[], width: number) {
  const gap = 9;
  const line = 14;
  const placed: { left: number; right: number; y: number }[] = [];
  const labels: object[] = [];
  const order = points.map((_, i) => i).sort((a, b) => points[a].y - points[b].y);
  for (const i of order) {
    const p = points[i];
    const onLeft = p.x + gap + p.width > width - 4;
    const left = onLeft ? p.x - gap - p.width : p.x + gap;
    const box = { left, right: left + p.width, y: p.y };
    for (const other of placed) {
      if (box.left < other.right && other.left < box.right && box.y < other.y + line) box.y = Math.max(box.y, other.y + line);
    }
    placed.push(box);
    labels[i] = { position: onLeft ? "left" : "right", distance: gap, offset: [0, box.y - p.y] };
  }
  return labels;
}
