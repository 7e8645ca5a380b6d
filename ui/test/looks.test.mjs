// Looks at every view of a small run and of a dense one, on a desk and on a phone, light
// and dark, by what holds with any font and Chromium: nothing is wider than the window, no
// text of a chart is cut off or lies on another, every text can be told from the paper.
// Pictures of it all go to the folder CNIBENCH_LOOKS, where that is set, for people.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const pages = process.env.CNIBENCH_PAGES ?? assert.fail("set CNIBENCH_PAGES to a folder of pages");
const pictures = process.env.CNIBENCH_LOOKS;

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
});
after(() => browser?.close());

// faults are what a reader would stumble over in the view that is shown.
function faults(view) {
  const list = [];
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > room) list.push(`the page is ${document.documentElement.scrollWidth} wide on ${room}`);
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  for (const figure of document.querySelectorAll(`#${view} figure`)) {
    const svg = figure.querySelector("svg");
    if (!svg || svg.getBoundingClientRect().width === 0) continue;
    const title = figure.querySelector("figcaption b")?.textContent ?? "a figure";
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter((e) => e.textContent.trim()).map((e) => ({ words: e.textContent, box: e.getBoundingClientRect(), fill: getComputedStyle(e).fill }));
    for (const [i, a] of texts.entries()) {
      const cut = Math.max(frame.left - a.box.left, a.box.right - frame.right, frame.top - a.box.top, a.box.bottom - frame.bottom);
      if (cut > 4) list.push(`${title}: "${a.words}" is cut off by ${Math.round(cut)} px`);
      if (a.fill.startsWith("rgb")) {
        const [high, low] = [light(a.fill), paper].sort((x, y) => y - x);
        if ((high + 0.05) / (low + 0.05) < 3) list.push(`${title}: "${a.words}" is ${a.fill} on the paper`);
      }
      for (const b of texts.slice(i + 1)) {
        const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        const least = Math.min(a.box.width * a.box.height, b.box.width * b.box.height);
        if (wide > 0 && high > 0 && wide * high > least / 3) list.push(`${title}: "${a.words}" lies on "${b.words}"`);
      }
    }
  }
  return list;
}

for (const name of ["quick", "large", "loaded", "both"]) {
  // Colours are the same in all. The dense run takes a minute a look: its narrow one, unless people want pictures.
  const looks = [[420, "dark"], ...(name === "quick" || pictures ? [[1300, "light"], [1300, "dark"], [420, "light"]] : [])];
  for (const [width, colorScheme] of looks) {
    test(`${name}, ${width} px, ${colorScheme}: every view can be read`, async () => {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, isMobile: width < 500 });
      const page = await context.newPage();
      await page.goto(pathToFileURL(`${pages}/${name}.html`).href);
      await page.locator("body[data-script]").waitFor();
      const found = [];
      for (const view of await page.locator("section.view").evaluateAll((all) => all.map((s) => s.id))) {
        await page.evaluate((v) => { location.hash = v; }, view);
        await page.locator(`#${view}`).waitFor();
        for (const figure of await page.locator(`#${view} figure:visible`).all()) {
          await figure.locator(".chart").evaluate((c) => c.scrollIntoView({ block: "center" }));
          await figure.locator("svg").waitFor();
        }
        found.push(...(await page.evaluate(faults, view)).map((f) => `${view}: ${f}`));
        if (pictures) await page.screenshot({ path: `${pictures}/${name}-${view}-${width}-${colorScheme}.png`, fullPage: true });
      }
      await context.close();
      assert.deepEqual(found, []);
    });
  }
}

test("the looks see a text that is cut off, covered, or pale", async () => {
  const page = await browser.newPage();
  const text = (x, fill, words) => `<text x="${x}" y="20" style="fill:${fill}">${words}</text>`;
  await page.setContent(`<body style="background:rgb(255,255,255)"><section id="v"><figure><figcaption><b>F</b></figcaption>
    <svg width="200" height="40" style="overflow:visible">${text(0, "rgb(0,0,0)", "whole")}${text(2, "rgb(0,0,0)", "above")}${text(80, "rgb(240,240,240)", "pale")}${text(180, "rgb(0,0,0)", "far too long")}</svg></figure></section></body>`);
  const found = (await page.evaluate(faults, "v")).join("\n");
  for (const want of [/"whole" lies on "above"/, /"pale" is rgb/, /"far too long" is cut off/]) assert.match(found, want);
  await page.close();
});

test("the pointer lifts a contender in the panels of every chart", async () => {
  const page = await browser.newPage({ viewport: { width: 1300, height: 1200 } });
  await page.goto(pathToFileURL(`${pages}/large.html`).href + "#latency");
  const charts = page.locator("#latency figure:visible", { hasText: "by percentile" }).locator(".chart");
  for (const i of [1, 0]) {
    await charts.nth(i).evaluate((c) => c.scrollIntoView({ block: "center" }));
    await charts.nth(i).locator("svg").waitFor();
  }
  const wide = (i) => charts.nth(i).locator('svg path[stroke-width="3"]').count();
  assert.equal(await wide(1), 0);
  const boxes = await charts.nth(0).locator("svg path").evaluateAll((all) => all.filter((p) => p.getAttribute("stroke-width") === "1.8").map((p) => { const at = p.getPointAtLength(p.getTotalLength() / 2).matrixTransform(p.getScreenCTM()); return [at.x, at.y]; }));
  await page.mouse.move(...boxes.filter(([, y]) => y > 0 && y < 1200).at(-1));
  for (let i = 0; i < 50 && (await wide(1)) === 0; i++) await page.waitForTimeout(100);
  assert.equal(await wide(0), 1);
  assert.equal(await wide(1), 1);
  await page.close();
});

test("the pointer lifts a contender out of the dots and bars of every chart", async () => {
  const page = await browser.newPage({ viewport: { width: 1300, height: 1900 } });
  for (const view of ["overview", "throughput", "efficiency"]) {
    await page.goto("about:blank");
    await page.goto(pathToFileURL(`${pages}/large.html`).href + `#${view}`);
    const charts = page.locator(`#${view} figure:visible .chart`);
    const shown = [...Array(Math.min(2, await charts.count())).keys()];
    for (const i of [...shown].reverse()) {
      await charts.nth(i).evaluate((c) => c.scrollIntoView({ block: "center" }));
      await charts.nth(i).locator("svg").waitFor();
    }
    const pale = (i) => charts.nth(i).locator('svg path[fill-opacity="0.2"]').count();
    const box = await charts.nth(0).locator("svg path").evaluateAll((all) => {
      const found = all.filter((p) => /^#/.test(p.getAttribute("fill") ?? "") && p.getBoundingClientRect().width >= 9)[3].getBoundingClientRect();
      return [found.x + found.width / 2, found.y + found.height / 2];
    });
    assert.equal(await pale(0), 0, view);
    await page.mouse.move(...box);
    for (const i of shown) {
      for (let n = 0; n < 50 && (await pale(i)) === 0; n++) await page.waitForTimeout(100);
      assert.ok((await pale(i)) >= 28, `${view}, chart ${i}: ${await pale(i)} are pale`);
    }
  }
  await page.close();
});
