// The axes by themselves, without a browser: what any figures of a run make of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild"; // vite's own needs Node 20, and Debian 12 has 18

const entry = fileURLToPath(new URL("../src/axes.ts", import.meta.url));
const { outputFiles } = await build({ entryPoints: [entry], bundle: true, write: false, format: "esm" });
const { logAxis, valueAxis } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

const theme = { ink: "", muted: "", line: "", paper: "", accent: "", series: [] };
const axis = (values, unit = "s", label = "Latency p99") => logAxis(theme, values, { label, unit });

test("a logarithmic axis spans its values in steps of 1, 2 and 5, and says what it is", () => {
  const a = axis([57e-6, 410e-6, 1.7e-3]);
  assert.equal(a.type, "log");
  assert.equal(a.name, "Latency p99, logarithmic");
  assert.deepEqual([a.min, a.max], [50e-6, 2e-3]);
  assert.deepEqual(a.axisLabel.customValues.map(a.axisLabel.formatter), ["50 µs", "100 µs", "200 µs", "500 µs", "1 ms", "2 ms"]);
});

test("its labels are at its ticks and its name has the unit, but of times", () => {
  const a = axis([3e9, 17e9], "bit/s", "Goodput");
  assert.equal(a.name, "Goodput, Gbit/s, logarithmic");
  assert.deepEqual(a.axisLabel.customValues.map(a.axisLabel.formatter), ["2", "5", "10", "20"]);
  assert.deepEqual(a.axisTick.customValues, a.axisLabel.customValues);
});

test("beyond four decades it labels whole ones only", () => {
  const a = axis([20e-6, 3]);
  assert.deepEqual(a.axisLabel.customValues.map(a.axisLabel.formatter), ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]);
});

test("any values give an axis with an end", () => {
  for (const values of [[], [0, -1], [1e-6], [1, 1], [NaN, 2], [1e-320, 1e308], [Infinity, 1], [0.1, 0.2, 0.3]]) {
    for (const unit of ["s", "1", "bit/s", "bytes"]) {
      const a = axis(values, unit);
      const known = values.filter((v) => v > 0 && Number.isFinite(v));
      assert.ok(a.min > 0 && a.max > a.min && Number.isFinite(a.max), `${values} ${unit}: ${a.min} to ${a.max}`);
      for (const v of known.filter((v) => v >= 1e-300 && v <= 1e300)) assert.ok(a.min <= v * 1.001 && v <= a.max * 1.001, `${v} ${unit} is not within ${a.min} to ${a.max}`);
      assert.ok(a.axisLabel.customValues.length > 0 && a.axisLabel.customValues.length < 700, `${values} ${unit}: ${a.axisLabel.customValues.length} labels`);
    }
  }
});

test("a linear axis begins at zero, or below the least", () => {
  const axis = { label: "Memory overhead", unit: "bytes" };
  assert.equal(valueAxis(theme, axis, 9e6, 600).min, 0);
  const below = valueAxis(theme, axis, 9e6, 600, {}, -3e6);
  assert.ok(below.min <= -3e6 && below.max >= 9e6);
});
