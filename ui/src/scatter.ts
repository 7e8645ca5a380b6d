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
    grid.left + 2,
    width - 4,
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

// placeLabels puts names beside their points where there is room: to the right,
// the left, or a line lower or higher. A name that would cover another or a
// point is left to the tooltip and the table.
function placeLabels(points: { x: number; y: number; width: number }[], first: number, last: number) {
  const [gap, line, dot] = [9, 13, 5];
  const taken = points.map((p) => ({ left: p.x - dot, right: p.x + dot, top: p.y - dot, bottom: p.y + dot }));
  return points.map((p) => {
    for (const shift of [0, line, -line]) {
      for (const position of ["right", "left"]) {
        const left = position === "right" ? p.x + gap : p.x - gap - p.width;
        const box = { left, right: left + p.width, top: p.y + shift - line / 2, bottom: p.y + shift + line / 2 };
        const free = taken.every((o) => box.right <= o.left || o.right <= box.left || box.bottom <= o.top || o.bottom <= box.top);
        if (!free || box.left < first || box.right > last) continue;
        taken.push(box);
        return { show: true, position, distance: gap, offset: [0, shift] };
      }
    }
    return { show: false };
  });
}
