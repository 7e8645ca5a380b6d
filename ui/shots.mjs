// Pictures for the documentation from a page: node shots.mjs PAGE.html FOLDER.
// One for each view in light, the overview in dark, and one on a phone.
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
  const view = tab.locator("section.view:visible");
  for (const figure of (await view.locator("figure:visible").all()).slice(0, 6)) {
    await figure.scrollIntoViewIfNeeded();
    await figure.locator("svg").waitFor();
  }
  await tab.evaluate(() => scrollTo(0, 0));
  await tab.screenshot({ path: `${folder}/${name}.png` });
  await context.close();
}

const context = await browser.newContext();
const tab = await context.newPage();
await tab.goto(pathToFileURL(page).href);
const views = await tab.locator("nav.views a").evaluateAll((list) => list.map((a) => a.hash.slice(1)));
await context.close();
for (const view of views) await shoot(view, `#${view}`);
await shoot("dark", "#overview", { colorScheme: "dark" });
await shoot("phone", "#overview", { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true });
await browser.close();
