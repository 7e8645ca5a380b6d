// Axis ticks, rounds and seconds; every other figure comes with its words
// from Go.

const decimal: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const binary: [number, string][] = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"], [1, ""]];
const symbols: Record<string, string> = { "bytes": "B", "CPU-s/Gbit": "CPU·s/Gbit", "CPU-s/s": "cores", "1/s": "/s", "1": "", "count": "" };

export interface Scale {
  factor: number;
  unit: string; // with its prefix
}

// scale is the multiple of the unit in which an axis up to max reads best.
export function scale(max: number, unit: string): Scale {
  // A node's cores are counted in cores: beside a busy node, an idle one has a short bar.
  const steps = unit === "bytes" ? binary : ["1", "count", "CPU-s/s"].includes(unit) ? [[1, ""] as [number, string]] : decimal;
  const size = Math.abs(max) * (1 + 1e-9);
  const [factor, prefix] = steps.find(([f]) => size >= f) ?? [1, ""];
  return { factor, unit: prefix + (symbols[unit] ?? unit) };
}

// tick is a number of few digits.
export function tick(value: number): string {
  return String(Number(value.toPrecision(3)));
}

// words is a value in its unit.
export function words(value: number | null, unit: string): string {
  if (value === null) return "–";
  const s = scale(value, unit);
  return `${tick(value / s.factor)}${unit === "1/s" ? "" : " "}${s.unit}`.trim();
}

// nines names a place of the percentile axis: 50 %, 90 %, 99 %, 99.9 %.
export function nines(place: number): string {
  if (place < 1) return `${tick(100 * (1 - 10 ** -place))} %`;
  return place === 1 ? "90 %" : place === 2 ? "99 %" : `99.${"9".repeat(Math.round(place) - 2)} %`;
}
