import { largest, valueAxis, whisker } from "./axes";
import type { Data, Figure, Scatter } from "./model";
import { seriesColor, type Theme, tooltip } from "./theme";

// Contenders of one cluster have one shape.
const shapes = ["circle", "rect", "triangle", "diamond", "roundRect", "pin", "arrow"];

export function scatter(chart: Scatter, data: Data, t: Theme, width: number): [number, object] {
  const points = chart.points.map((p) => ({ ...p, name: data.contenders[p.c] }));
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
        type: "line",
        silent: true,
        symbol: "none",
        z: 3,
        lineStyle: { color: t.accent, width: 1.5, type: [6, 4] },
        data: points.filter((p) => p.frontier).map((p) => [p.x.value, p.y.value]).sort((a, b) => a[0] - b[0]),
      },
      {
        type: "scatter",
        z: 5,
        symbolSize: 11,
        data: points.map((p, i) => ({
          value: [p.x.value, p.y.value],
          symbol: p.cluster ? shapes[(p.cluster - 1) % shapes.length] : "circle",
          itemStyle: { color: seriesColor(t, p.c) },
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
  return [height, option];
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
