// Each figure as SVG, PNG and CSV: made here, from what is drawn and its data.
import { make } from "./dom";
import type { Chart, Data } from "./model";
import { nameOf, theme } from "./theme";

export type Cell = string | number | null;

// addExports puts the three buttons under a figure.
export function addExports(figure: HTMLElement, name: () => string, rows: () => Cell[][], run: string): void {
  if (figure.querySelector(".exports")) return;
  const buttons: [string, () => Promise<Blob> | Blob][] = [
    ["SVG", () => new Blob([source(figure, name(), run)], { type: "image/svg+xml" })],
    ["PNG", () => png(source(figure, name(), run))],
    ["CSV", () => new Blob([csv(rows())], { type: "text/csv" })],
  ];
  const bar = make("p", { class: "exports" });
  for (const [kind, blob] of buttons) {
    const button = make("button", { type: "button", "aria-label": `${kind} of ${name()}` }, kind);
    button.addEventListener("click", async () => save(await blob(), `${file(name())}.${kind.toLowerCase()}`));
    bar.append(button);
  }
  figure.append(bar);
}

function file(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 80) || "figure";
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// source is the figure's drawing as a file of its own, on its background, under its title
// and the name of its run. Axes have their units.
function source(figure: HTMLElement, title: string, run: string): string {
  const drawn = figure.querySelector("svg")!;
  const [width, height, head] = [drawn.clientWidth || Number(drawn.getAttribute("width")), drawn.clientHeight || Number(drawn.getAttribute("height")), 52];
  const shape = (tag: string, attributes: Record<string, string | number>, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attributes)) element.setAttribute(k, String(v));
    element.textContent = text;
    return element;
  };
  const t = theme();
  const words = { x: 12, "font-family": getComputedStyle(document.body).fontFamily };
  const svg = shape("svg", { xmlns: "http://www.w3.org/2000/svg", width, height: height + head, viewBox: `0 ${-head} ${width} ${height + head}` });
  svg.append(
    shape("rect", { y: -head, width: "100%", height: "100%", fill: t.paper }),
    shape("text", { ...words, y: 22 - head, "font-size": 15, "font-weight": 600, fill: t.ink }, title),
    shape("text", { ...words, y: 41 - head, "font-size": 12, fill: t.muted }, `cnibench, run ${run}`),
  );
  const inner = drawn.cloneNode(true) as SVGElement;
  inner.setAttribute("width", String(width));
  inner.setAttribute("height", String(height));
  inner.removeAttribute("style");
  svg.append(inner);
  return new XMLSerializer().serializeToString(svg);
}

async function png(svg: string): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = make("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) => canvas.toBlob((b) => (b ? done(b) : fail(new Error("no PNG"))), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

// csv quotes every text and no number, as `cnibench report --format csv` does, and
// puts an apostrophe before what a spreadsheet would take for a formula.
export function csv(rows: Cell[][]): string {
  const guard = (s: string) => s.replace(/(^|[;,\t\r\n"])(?=[=+\-@'\t\r\n＝＋－＠])/g, "$1'");
  const cell = (c: Cell) => (c === null ? "" : typeof c === "number" ? String(c) : `"${guard(c).replaceAll('"', '""')}"`);
  return rows.map((row) => row.map(cell).join(",") + "\n").join("");
}

// chartRows are a chart's figures as numbers, in the units of its heads.
export function chartRows(chart: Chart, data: Data): Cell[][] {
  const of = (x: { c: number; name?: string }) => nameOf(data, x);
  switch (chart.kind) {
    case "forest":
    case "bars": {
      const head = `${chart.x.label} (${chart.x.unit})`;
      return [["contender", head, "low", "high", "rounds"], ...chart.rows.map((r) => [of(r), r.value, r.low, r.high, r.rounds.join(" ")])];
    }
    case "curves":
      return [["series", "percentile", `${chart.y.label} (${chart.y.unit})`], ...chart.series.flatMap((s) => s.points.map((p) => [of(s), ...p]))];
    case "load":
      return [["contender", `${chart.x.label} (${chart.x.unit})`, `${chart.y.label} (${chart.y.unit})`], ...chart.series.flatMap((s) => s.points.map((p) => [of(s), ...p]))];
    case "pairs":
      return [["contender", "load", `${chart.x.label} (${chart.x.unit})`, "low", "high"], ...chart.pairs.flatMap((p) => p.figures.flatMap((f, k) => (f ? [[of(p), chart.parts[k], f.value, f.low, f.high]] : [])))];
    case "scatter": {
      const [x, y] = [`${chart.x.label} (${chart.x.unit})`, `${chart.y.label} (${chart.y.unit})`];
      return [
        ["contender", x, `${x} low`, `${x} high`, y, `${y} low`, `${y} high`, "frontier"],
        ...chart.points.map((p) => [of(p), p.x.value, p.x.low, p.x.high, p.y.value, p.y.low, p.y.high, p.frontier ? "yes" : ""]),
      ];
    }
    case "slopes":
      return [["product", chart.x.label, `${chart.y.label} (${chart.y.unit})`], ...chart.series.flatMap((s) => s.points.map((p) => [of(s), chart.parts[p[0]], p[1]]))];
    case "stacks":
      return [["contender", "node", ...chart.parts.map((p) => `${p} (${chart.x.unit})`)], ...chart.stacks.map((s) => [of(s), s.side, ...s.values])];
  }
}
