// Pictures for the documentation: node shots.mjs PAGE.html FOLDER takes those
// that README.md and docs/ show, of the views that the page has.
import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [page, folder] = process.argv.slice(2);
if (!folder) {
  console.error("usage: node shots.mjs PAGE.html FOLDER");
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

async function shoot(name, hash, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 1000 }, ...options });
  const tab = await context.newPage();
  await tab.goto(pathToFileURL(page).href + hash);
  if ((await tab.locator(`section${hash}`).count()) === 0) return context.close();
  const view = tab.locator("section.view:visible");
  for (const figure of (await view.locator("figure:visible").all()).slice(0, 6)) {
    await figure.scrollIntoViewIfNeeded();
    await figure.locator("svg").waitFor();
  }
  await tab.evaluate(() => scrollTo(0, 0));
  await tab.screenshot({ path: `${folder}/${name}.png` });
  await context.close();
}

await shoot("report", "#overview", { viewport: { width: 1200, height: 1400 } });
await shoot("dark", "#overview", { colorScheme: "dark" });
await shoot("phone", "#overview", { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true });
for (const view of ["latency", "efficiency", "resources", "choice", "seconds", "study"]) await shoot(view, `#${view}`);
await browser.close();
