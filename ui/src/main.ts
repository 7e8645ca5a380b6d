import { draw } from "./charts";
import type { Page } from "./model";

// A test or a reader without developer tools sees what went wrong in the page
// itself: <html data-errors="…">.
function note(message: string): void {
  const root = document.documentElement;
  root.dataset.errors = (root.dataset.errors ? root.dataset.errors + "\n" : "") + message;
}
window.addEventListener("error", (e) => note(e.message || "error"));
window.addEventListener("unhandledrejection", (e) => note(String(e.reason)));
document.addEventListener("securitypolicyviolation", (e) => note(`blocked: ${e.violatedDirective} ${e.blockedURI}`));

const page = JSON.parse(document.getElementById("data")!.textContent!) as Page;

function drawAll(): void {
  for (const chart of page.charts) {
    const element = document.getElementById(chart.id);
    if (element) draw(element, chart);
  }
}

let width = 0;
drawAll();
new ResizeObserver(() => {
  // Heights follow from the charts themselves; only a new width matters.
  if (document.body.clientWidth !== width) {
    width = document.body.clientWidth;
    drawAll();
  }
}).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

// Paper is white: the light palette while printing, whatever the screen has.
addEventListener("beforeprint", () => {
  document.documentElement.dataset.theme = "light";
  drawAll();
});
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.theme;
  drawAll();
});
