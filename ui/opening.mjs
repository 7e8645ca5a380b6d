// How long pages take to open, in ms: node opening.mjs PAGE.html… Each is opened
// five times in a new context; printed are the median until the page's first view is
// drawn, and that of drawing another view.
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const median = (list) => Math.round(list.sort((a, b) => a - b)[(list.length - 1) >> 1]);
for (const file of process.argv.slice(2)) {
  const [opens, draws] = [[], []];
  for (let i = 0; i < 5; i++) {
    const context = await browser.newContext({ viewport: { width: 1200, height: 900 } });
    await context.addInitScript(() => {
      const look = () => (document.querySelector("#overview .chart svg") ? (window.drawn = performance.now()) : requestAnimationFrame(look));
      look();
    });
    const page = await context.newPage();
    await page.goto(pathToFileURL(file).href);
    await page.evaluate(() => document.querySelector("#overview .chart")?.scrollIntoView());
    opens.push(await page.waitForFunction(() => window.drawn).then((h) => h.jsonValue()));
    draws.push(
      await page.evaluate(async () => {
        const begin = performance.now();
        location.hash = document.getElementById("latency") ? "latency" : "throughput";
        while (!document.querySelector("section.view:not([hidden]):not(#overview) svg")) await new Promise(requestAnimationFrame);
        return performance.now() - begin;
      }),
    );
    await context.close();
  }
  console.log(`${file}: opened after ${median(opens)} ms, another view drawn ${median(draws)} ms after its choice`);
}
await browser.close();
