// How far apart the page's colours are, for all eyes: node colours.mjs prints, for light
// and dark and for each kind of sight, the two nearest colours of the palette by CIEDE2000
// and the least contrast with the paper, and fails below the limits of README.md.
import { readFileSync } from "node:fs";

const css = readFileSync(new URL("../internal/report/assets/page.css", import.meta.url), "utf8");
const blocks = css.split("prefers-color-scheme: dark");
const palette = (text) => Array.from({ length: 9 }, (_, i) => text.match(new RegExp(`--series-${i}: (#[0-9a-f]{6})`))[1]);
const paper = (text) => ((h) => (h.length === 4 ? "#" + [...h.slice(1)].map((c) => c + c).join("") : h))(text.match(/--paper: (#[0-9a-f]{3,6})/)[1]);

const linear = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
// Machado, Oliveira and Fernandes 2009, severity 1.
const sights = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const times = (m, v) => m.map((row) => Math.min(1, Math.max(0, row[0] * v[0] + row[1] * v[1] + row[2] * v[2])));

function lab(rgb) {
  const f = (v) => (v > 0.008856 ? Math.cbrt(v) : 7.787 * v + 16 / 116);
  const [r, g, b] = rgb;
  const x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
  const y = f(0.2126729 * r + 0.7151522 * g + 0.072175 * b);
  const z = f((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function ciede2000([l1, a1, b1], [l2, a2, b2]) {
  const rad = Math.PI / 180;
  const mean = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const g = 0.5 * (1 - Math.sqrt(mean ** 7 / (mean ** 7 + 25 ** 7)));
  const [p1, p2] = [a1 * (1 + g), a2 * (1 + g)];
  const [c1, c2] = [Math.hypot(p1, b1), Math.hypot(p2, b2)];
  const hue = (b, a) => (a === 0 && b === 0 ? 0 : (Math.atan2(b, a) / rad + 360) % 360);
  const [h1, h2] = [hue(b1, p1), hue(b2, p2)];
  let dh = h2 - h1;
  if (c1 * c2 === 0) dh = 0;
  else if (dh > 180) dh -= 360;
  else if (dh < -180) dh += 360;
  const big = 2 * Math.sqrt(c1 * c2) * Math.sin((dh / 2) * rad);
  const [l, c] = [(l1 + l2) / 2, (c1 + c2) / 2];
  const h = c1 * c2 === 0 ? h1 + h2 : Math.abs(h1 - h2) <= 180 ? (h1 + h2) / 2 : (h1 + h2 + (h1 + h2 < 360 ? 360 : -360)) / 2;
  const t = 1 - 0.17 * Math.cos((h - 30) * rad) + 0.24 * Math.cos(2 * h * rad) + 0.32 * Math.cos((3 * h + 6) * rad) - 0.2 * Math.cos((4 * h - 63) * rad);
  const sl = 1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2);
  const [sc, sh] = [1 + 0.045 * c, 1 + 0.015 * c * t];
  const rt = -2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7)) * Math.sin(60 * Math.exp(-(((h - 275) / 25) ** 2)) * rad);
  return Math.sqrt(((l2 - l1) / sl) ** 2 + ((c2 - c1) / sc) ** 2 + (big / sh) ** 2 + rt * ((c2 - c1) / sc) * (big / sh));
}

const shine = (hex) => ((v) => 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2])(linear(hex));
const contrast = (a, b) => ((x, y) => (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05))(shine(a), shine(b));

const limits = { usual: 15, protanopia: 8, deuteranopia: 8, tritanopia: 6 };
let failed = false;
for (const [mode, text] of [["light", blocks[0]], ["dark", blocks[1]]]) {
  const colours = palette(text);
  const least = Math.min(...colours.map((c) => contrast(c, paper(text))));
  if (least < 3) failed = true;
  console.log(`${mode}: least contrast with the paper ${least.toFixed(2)}`);
  for (const [sight, matrix] of Object.entries(sights)) {
    let nearest = { d: Infinity };
    colours.forEach((a, i) => colours.slice(0, i).forEach((b, j) => {
      const d = ciede2000(lab(times(matrix, linear(a))), lab(times(matrix, linear(b))));
      if (d < nearest.d) nearest = { d, pair: `${j} ${b} and ${i} ${a}` };
    }));
    if (nearest.d < limits[sight]) failed = true;
    console.log(`${mode}, ${sight}: nearest ΔE ${nearest.d.toFixed(1)} (${nearest.pair}), at least ${limits[sight]}`);
  }
}
process.exitCode = failed ? 1 : 0;
