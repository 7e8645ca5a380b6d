import { scale, tick, words } from "./format";
import type { Axis, Figure } from "./model";
import type { Theme } from "./theme";

// valueAxis starts at zero, or at the round number below least where that is negative, and carries its unit once, in its name.
export function valueAxis(t: Theme, axis: Axis, max: number, width: number, extra: object = {}, least = 0) {
  const s = scale(Math.max(max, -least), axis.unit);
  // Ticks at round numbers of the shown unit: binary ones would not be else.
  const step = s.factor * roundUp((max - Math.min(0, least)) / s.factor / (width < 500 ? 3 : 5));
  return {
    type: "value",
    name: s.unit ? `${axis.label}, ${s.unit}` : axis.label,
    nameLocation: "middle",
    nameTextStyle: { color: t.muted, fontSize: 12 },
    min: Math.min(0, step * Math.floor(least / step)),
    max: step * Math.ceil(max / step),
    interval: step,
    axisLabel: { color: t.muted, fontSize: 12, formatter: (v: number) => tick(v / s.factor) },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: t.line } },
    ...extra,
  };
}

// roundUp is the next 1, 2 or 5 times a power of ten at or above v.
export function roundUp(v: number): number {
  const power = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 5, 10].map((s) => s * power).find((s) => s >= v * (1 - 1e-9))!;
}

export function roundDown(v: number): number {
  const power = 10 ** Math.floor(Math.log10(v));
  return [5, 2, 1].map((s) => s * power).find((s) => s <= v * (1 + 1e-9))!;
}

export function largest(figures: Figure[]): number {
  return Math.max(...figures.map((f) => Math.max(f.value, f.high ?? 0))) || 1;
}

// whisker draws an interval with caps between two data points.
export function whisker(color: string, data: number[][], vertical: boolean) {
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

// quiet is what all axes have in common.
export function quiet(t: Theme) {
  return {
    nameTextStyle: { color: t.muted, fontSize: 12 },
    axisLabel: { color: t.muted, fontSize: 12 },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: t.line } },
  };
}

// logAxis spans the values in whole steps of 1, 2 and 5, each of which it labels, and its
// name says what it is. Times reach over units, so that each label has its own; else the
// unit is in the name.
export function logAxis(t: Theme, values: number[], axis: Axis) {
  // Beyond these the next round number is no number: the steps would not end.
  const found = values.filter((v) => v > 0).map((v) => Math.min(Math.max(v, 1e-300), 1e300));
  const q = quiet(t);
  const s = axis.unit === "s" ? { factor: 1, unit: "" } : scale(found.length > 0 ? Math.max(...found) : 1, axis.unit);
  const plain = (v: number) => Number(v.toPrecision(3));
  const least = plain(found.length > 0 ? roundDown(Math.min(...found) / s.factor) : 1);
  const high = plain(found.length > 0 ? roundUp(Math.max(...found) / s.factor) : 10);
  const most = high > least ? high : plain(roundUp(least * 1.01));
  const steps: number[] = [];
  for (let v = least; v <= most; v = plain(roundUp(v * 1.01))) steps.push(v);
  // Beyond four decades there is room for whole ones only.
  const shown = most / least > 1e4 ? steps.filter((v) => Number.isInteger(Math.round(1e6 * Math.log10(v)) / 1e6)) : steps;
  const customValues = shown.map((v) => v * s.factor);
  return {
    ...q,
    type: "log" as const,
    name: `${[axis.label, s.unit].filter(Boolean).join(", ")}, logarithmic`,
    nameLocation: "middle",
    nameGap: 50,
    min: least * s.factor,
    max: most * s.factor,
    axisTick: { show: false, customValues },
    axisLabel: { ...q.axisLabel, customValues, formatter: (v: number) => (axis.unit === "s" ? words(v, "s") : tick(v / s.factor)) },
  };
}
