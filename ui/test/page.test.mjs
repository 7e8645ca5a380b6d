// Opens the pages of the folder CNIBENCH_PAGES in a real Chromium. `go test
// ./internal/report -run Browser` makes them and runs this; npm test needs the
// folder, which that command leaves behind when the variable is set.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const pages = process.env.CNIBENCH_PAGES ?? assert.fail("set CNIBENCH_PAGES to a folder of pages");
const address = (name) => pathToFileURL(`${pages}/${name}.html`).href;

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
});
after(() => browser?.close());

// open gives a page and fails the test on any error but quiet ones, or request
// to elsewhere.
async function open(t, name, { hash = "", url = address(name) + hash, route, quiet = /^$/, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (m) => m.type() === "error" && !quiet.test(m.text()) && faults.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => faults.push(`error: ${e.message}`));
  page.on("request", (r) => /^(file|blob):/.test(r.url()) || r.url().startsWith(url) || faults.push(`request: ${r.url()}`));
  if (route) await page.route(`${url}**`, route);
  await page.goto(url);
  await page.locator("body[data-script]").waitFor(); // unpacked and begun
  t.after(async () => {
    assert.deepEqual(faults, []);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.errors ?? ""), "");
    await context.close();
  });
  return page;
}

const views = ["overview", "throughput", "latency", "efficiency", "resources", "choice", "published", "seconds", "findings", "results", "method"];
const visibleRows = (page, view) => page.locator(`#${view} tr[data-c]:visible`);

async function drawn(page, view) {
  for (const figure of await page.locator(`#${view} figure:visible`).all()) {
    await figure.locator(".chart").evaluate((c) => c.scrollIntoView({ block: "center" })); // a caption can be taller than a phone
    await figure.locator("svg").waitFor();
    const paths = await figure.locator("svg path, svg rect").count();
    assert.ok(paths > 3, `${await figure.locator("figcaption").innerText()}: only ${paths} shapes`);
    assert.ok(!(await figure.locator("svg").innerHTML()).includes("NaN"), "NaN in the drawing");
  }
}

describe("a full report", () => {
  for (const view of views) {
    test(`shows the view ${view}, alone, by its address`, async (t) => {
      const page = await open(t, "full", { hash: `#${view}` });
      assert.deepEqual(await page.locator("section.view:visible").evaluateAll((list) => list.map((s) => s.id)), [view]);
      assert.equal(await page.locator("nav.views a[aria-current=page]").count(), 1);
      await drawn(page, view);
      if (!["overview", "published", "findings", "results", "method"].includes(view)) assert.ok((await page.locator(`#${view} figure`).count()) > 0, "no figure");
    });
  }

  test("has the charts that the issue asks for", async (t) => {
    const page = await open(t, "full");
    const captions = (await page.locator("figcaption b").allTextContents()).join("\n");
    for (const want of ["Goodput, TCP, one stream (dts)", "Goodput against host, TCP", "Latency p99 against load, http-350", "Latency by percentile, 350-byte responses at 10,000 requests/s (http-350)", "Efficiency, TCP, one stream (dts)", "CPU by mode, nothing runs", "CPU by mode, TCP, one stream (dts)", "Which one?", "Score"]) {
      assert.ok(captions.includes(want), `no chart ${want} among\n${captions}`);
    }
  });

  test("filters by contender and step, and keeps that in the address", async (t) => {
    const page = await open(t, "full");
    const all = await visibleRows(page, "overview").count();
    await page.locator("#filter summary").click();
    await page.locator("#filter fieldset", { hasText: "Contenders" }).getByRole("button", { name: "none" }).click();
    await page.getByLabel("host", { exact: true }).check();
    await page.getByLabel("canal", { exact: true }).check();
    const some = await visibleRows(page, "overview").count();
    assert.ok(some > 0 && some < all, `${some} of ${all} rows`);
    assert.match(await page.evaluate(() => location.hash), /c=host&c=canal/);
    await page.getByRole("link", { name: "Throughput" }).click();
    await page.locator("#throughput svg").first().waitFor();
    const text = await page.locator("#throughput svg").first().textContent();
    assert.ok(text.includes("canal") && !text.includes("macvlan"), text);
    await page.locator("#filter fieldset", { hasText: "Steps" }).getByRole("button", { name: "none" }).click();
    await page.getByLabel("dus", { exact: true }).check();
    assert.equal(await page.locator("#throughput figure:visible").count(), 1);
    const copy = await open(t, "full", { hash: await page.evaluate(() => location.hash) });
    assert.equal(await copy.locator("#throughput figure:visible").count(), 1);
    assert.match(await copy.locator("#filter-state").textContent(), /2 of 8 contenders, 1 of \d+ steps/);
  });

  test("says that none is no choice", async (t) => {
    const page = await open(t, "full");
    const all = await visibleRows(page, "overview").count();
    await page.locator("#filter summary").click();
    await page.locator("#filter fieldset", { hasText: "Contenders" }).getByRole("button", { name: "none" }).click();
    assert.equal(await page.locator("#filter-state").textContent(), ": choose at least one of the contenders");
    assert.equal(await visibleRows(page, "overview").count(), all);
    await page.getByLabel("canal", { exact: true }).check();
    assert.match(await page.locator("#filter-state").textContent(), /^: 1 of 8 contenders$/);
  });

  test("names its logarithmic axes and their steps", async (t) => {
    const page = await open(t, "full", { hash: "#latency" });
    for (const figure of await page.locator("#latency figure:visible").all()) {
      await figure.scrollIntoViewIfNeeded();
      const texts = await figure.locator("svg text").allTextContents();
      assert.ok(texts.some((w) => w.endsWith(", logarithmic")), texts.join("; "));
      assert.ok(texts.filter((w) => /^[125]0{0,2} (µs|ms|s)$/.test(w)).length >= 2, texts.join("; "));
      assert.match(await figure.locator("figcaption").textContent(), /axis is logarithmic/);
    }
  });

  test("names every point", async (t) => {
    for (const [name, width] of [["full", 1200], ["large", 1200], ["large", 360]]) {
      const page = await open(t, name, { hash: "#efficiency", viewport: { width, height: 900 } });
      for (const figure of await page.locator("#efficiency figure.scatter").all()) {
        await figure.scrollIntoViewIfNeeded();
        await figure.locator("svg").waitFor();
        const texts = (await figure.locator("svg text").allTextContents()).map((w) => w.replace(/^\d+ /, ""));
        const names = await figure.locator("tbody th").allTextContents();
        const points = names.filter((n) => texts.includes(n));
        assert.ok(points.length >= names.length - 1, `${points.length} of ${names.length} are named: ${texts}`); // the baseline may have no point
      }
    }
  });

  test("zooms by keyboard, and keeps it when it is drawn again", async (t) => {
    const page = await open(t, "full", { hash: "#seconds" });
    const last = page.locator("#traces figure svg").last();
    await last.waitFor();
    const whole = await last.textContent();
    const changed = async (from) => {
      for (let i = 0; i < 50 && (await last.textContent()) === from; i++) await page.waitForTimeout(100);
      return last.textContent();
    };
    await page.getByRole("button", { name: "Zoom in" }).focus();
    await page.keyboard.press("Enter");
    const near = await changed(whole);
    assert.notEqual(near, whole);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const earlier = await changed(near);
    assert.notEqual(earlier, near);
    await page.setViewportSize({ width: 1100, height: 900 });
    await page.waitForTimeout(500);
    assert.equal(await last.textContent(), earlier);
    await page.getByRole("button", { name: "Show all of it" }).click();
    assert.match(await changed(earlier), /5 s10 s15 s20 s/);
  });

  test("filters by kernel and underlay", async (t) => {
    const page = await open(t, "ladder", { hash: "#latency" });
    const all = await page.locator("#latency figure:visible").count();
    await page.locator("#filter summary").click();
    await page.getByLabel(/underlay vpc/).uncheck();
    assert.equal(await page.locator("#latency figure:visible").count(), all / 2);
  });

  test("chooses recordings and zooms them together", async (t) => {
    const page = await open(t, "full", { hash: "#seconds?t.c=macvlan&t.s=dts&t.round=2" });
    await page.locator("#traces svg").first().waitFor();
    assert.equal(await page.locator("#trace-c").inputValue(), "macvlan");
    assert.equal(await page.locator("#trace-round").inputValue(), "2");
    assert.ok((await page.locator("#traces figure").count()) >= 10);
    const ticks = (i) => page.locator("#traces figure svg").nth(i).textContent();
    const before = await ticks(7);
    const box = await page.locator("#traces .chart").first().boundingBox();
    await page.keyboard.down("Control");
    await page.mouse.move(box.x + box.width / 2, box.y + 80);
    for (let i = 0; i < 4; i++) await page.mouse.wheel(0, -400);
    await page.keyboard.up("Control");
    for (let i = 0; i < 50 && (await ticks(7)) === before; i++) await page.waitForTimeout(100);
    assert.notEqual(await ticks(7), before, "a chart did not follow");
    await page.locator("#trace-s").selectOption("idle");
    assert.match(await page.evaluate(() => location.hash), /t\.s=idle/);
    assert.equal(await page.locator("#trace-c").inputValue(), "canal");
    await page.locator("#traces details summary").first().click();
    await page.locator("#traces table tr").nth(20).waitFor();
  });

  for (const [view, want, which = ""] of [
    ["choice", "Score"], ["choice", "need", ".decision"], ["throughput", "contender"], ["latency", "contender"], ["efficiency", "frontier"], ["resources", "softirq"], ["seconds", "seconds"],
  ]) {
    test(`gives a figure of ${view}${which} as SVG, PNG and CSV`, async (t) => {
      const page = await open(t, "full", { hash: `#${view}` });
      const figure = page.locator(`#${view} figure${which}:visible`).first();
      await figure.scrollIntoViewIfNeeded();
      await figure.locator(".exports").waitFor();
      const saved = {};
      for (const kind of ["SVG", "PNG", "CSV"]) {
        const download = page.waitForEvent("download");
        await figure.getByRole("button", { name: `${kind} of` }).click();
        saved[kind] = await readFile(await (await download).path());
      }
      assert.match(saved.SVG.toString(), /^<svg.*<\/svg>$/s);
      assert.match(saved.SVG.toString(), /cnibench, run 20260314-091500-a1b2/);
      assert.equal(saved.PNG.subarray(1, 4).toString(), "PNG");
      assert.ok(saved.PNG.length > 2000, "an empty picture");
      assert.ok(saved.CSV.toString().includes(want), saved.CSV.toString());
    });
  }

  test("fills the table of every result", async (t) => {
    const page = await open(t, "full", { hash: "#results?c=canal" });
    const rows = page.locator("#every tr[data-c]:visible");
    await rows.first().waitFor(); // the first step is open
    assert.ok((await rows.allTextContents()).every((row) => row.startsWith("canal")));
    for (const opened of await page.locator("#every details[open] summary").all()) await opened.click();
    await page.locator("#every summary", { hasText: "dts" }).click();
    await rows.first().waitFor();
    assert.ok((await rows.count()) > 3);
    assert.ok((await rows.allTextContents()).every((row) => row.startsWith("canal")));
  });

  test("works by keyboard", async (t) => {
    const page = await open(t, "full");
    const reached = new Set();
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Tab");
      reached.add(await page.evaluate(() => document.activeElement.textContent.trim().slice(0, 20)));
    }
    for (const want of ["Throughput", "Choice", "Filter"]) assert.ok(reached.has(want), `${want} is not among ${[...reached].join("; ")}`);
    await page.getByRole("link", { name: "Throughput" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("#throughput svg").first().waitFor();
    const summary = page.locator("#throughput figure summary").first();
    await summary.focus();
    await page.keyboard.press("Space");
    await page.locator("#throughput figure table").first().waitFor();
  });

  test("names everything for a screen reader", async (t) => {
    const page = await open(t, "full");
    const bare = await page.evaluate(() => {
      const charts = [...document.querySelectorAll(".chart")].filter((c) => c.getAttribute("role") !== "img" || !c.getAttribute("aria-label"));
      const tables = [...document.querySelectorAll("figure")].filter((f) => !f.querySelector("table, ol"));
      const inputs = [...document.querySelectorAll("input, select")].filter((i) => !i.closest("label"));
      const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
      return { charts: charts.length, tables: tables.length, inputs: inputs.length, twice: ids.filter((id, i) => ids.indexOf(id) !== i) };
    });
    assert.deepEqual(bare, { charts: 0, tables: 0, inputs: 0, twice: [] });
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`is readable in ${colorScheme}`, async (t) => {
      const page = await open(t, "full", { colorScheme });
      const contrast = await page.evaluate(() => {
        const light = (c) => {
          const [r, g, b] = c.match(/[\d.]+/g).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const paper = light(getComputedStyle(document.body).backgroundColor);
        const ratio = (e) => { const ink = light(getComputedStyle(e).color); return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); };
        return Object.fromEntries(["h1", ".facts", "small", ".views a", ".legend", "td", ".better", ".worse"].map((s) => [s, document.querySelector(s)]).filter(([, e]) => e).map(([s, e]) => [s, ratio(e)]));
      });
      for (const [what, ratio] of Object.entries(contrast)) assert.ok(ratio >= 4.5, `${what} has a contrast of ${ratio}`);
    });
  }

  test("fits a phone", async (t) => {
    const page = await open(t, "full", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
    for (const view of views) {
      await page.evaluate((v) => { location.hash = v; }, view);
      await page.locator(`#${view}`).waitFor();
      await drawn(page, view);
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= room, `${view} is ${wide} wide on ${room}`);
    }
  });

  test("prints every view, in light colours", async (t) => {
    const page = await open(t, "full", { colorScheme: "dark" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await page.emulateMedia({ media: "print" });
    assert.ok((await page.locator("figure:visible svg").count()) > 8);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.ok((await page.pdf()).length > 50_000);
    await page.emulateMedia({ media: "screen" });
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    assert.equal(await page.locator("section.view:visible").count(), 1);
  });

  test("prints a summary of two pages first", async (t) => {
    for (const name of ["full", "quick", "few"]) {
      const page = await open(t, name);
      await page.evaluate(() => {
        dispatchEvent(new Event("beforeprint"));
        for (const s of document.querySelectorAll("section.view:not(#overview), footer")) s.remove();
      });
      const pages = (await page.pdf({ format: "A4" })).toString("latin1").match(/\/Type\s*\/Page\b(?!s)/g).length;
      assert.ok(pages <= 2, `the summary of ${name} takes ${pages} pages`);
    }
  });

  test("writes nothing smaller than 12 pixels", async (t) => {
    const page = await open(t, "full");
    for (const view of views) {
      await page.evaluate((v) => { location.hash = v; }, view);
      await drawn(page, view);
      const small = await page.evaluate(() => [...document.querySelectorAll("section.view:not([hidden]) *, header *, nav *, footer *")]
        .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && e.getClientRects().length && parseFloat(getComputedStyle(e).fontSize) < 12)
        .map((e) => `${e.tagName} ${e.textContent.slice(0, 20)}`).slice(0, 5));
      assert.deepEqual(small, [], view);
    }
  });

  test("says every point to the keyboard", async (t) => {
    const page = await open(t, "full", { hash: "#throughput" });
    const figure = page.locator("#throughput figure").first();
    await figure.locator("svg").waitFor();
    await figure.locator(".chart").focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await figure.locator(".said").textContent(), /host.*Gbit\/s/);
    await page.keyboard.press("ArrowRight");
    assert.match(await figure.locator(".said").textContent(), /macvlan.*Gbit\/s/);
    await page.keyboard.press("ArrowLeft");
    assert.match(await figure.locator(".said").textContent(), /host/);
  });

  test("keeps a click on a legend in the address", async (t) => {
    const page = await open(t, "full", { hash: "#resources" });
    const figure = page.locator("#resources figure.stacks").first();
    await figure.locator("svg text", { hasText: "softirq" }).click();
    await page.waitForFunction(() => location.hash.includes("off=softirq"));
    const copy = await open(t, "full", { hash: await page.evaluate(() => location.hash) });
    const fill = (on) => on.locator("#resources figure.stacks svg text", { hasText: "softirq" }).first().getAttribute("fill");
    await copy.locator("#resources figure.stacks svg").first().waitFor();
    assert.notEqual(await fill(copy), await copy.locator("#resources figure.stacks svg text", { hasText: "user" }).first().getAttribute("fill"));
    await copy.locator("#resources figure.stacks svg text", { hasText: "softirq" }).first().click();
    await copy.waitForFunction(() => !location.hash.includes("off="));
  });

  test("draws charts beside each other on one scale", async (t) => {
    const page = await open(t, "full", { hash: "#throughput" });
    await drawn(page, "throughput");
    const ends = await page.locator("#throughput figure svg").evaluateAll((list) => list.map((svg) => Math.max(...[...svg.querySelectorAll("text")].map((t) => Number(t.textContent)).filter((v) => !Number.isNaN(v)))));
    assert.equal(new Set(ends).size, 1, `the axes end at ${ends}`);
  });

  test("turns wide tables into cards on a phone", async (t) => {
    const page = await open(t, "full", { viewport: { width: 420, height: 800 }, isMobile: true });
    const card = page.locator("table.cards tbody tr").nth(1);
    assert.match(await card.locator("td").first().getAttribute("data-head"), /Goodput|TCP/);
    const [box, room] = [await card.boundingBox(), await page.evaluate(() => innerWidth)];
    assert.ok(box.x >= 0 && box.x + box.width <= room, JSON.stringify(box));
    assert.equal(await page.locator("table.cards").first().getAttribute("role"), "table");
  });

  test("shows its tables without JavaScript", async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(address("full"));
    assert.ok((await page.locator("section.view").count()) > 8);
    for (const view of ["overview", "throughput", "findings", "method"]) assert.ok(await page.locator(`#${view} h2`).isVisible());
    assert.ok((await visibleRows(page, "overview").count()) >= 8);
    assert.ok((await page.locator("body").innerText()).includes("need JavaScript"));
    await context.close();
  });
});

const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
for (const name of ["full", "quick", "loaded", "both"]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`${name}, ${colorScheme}: axe finds nothing serious`, async (t) => {
      const page = await open(t, name, { colorScheme });
      await page.evaluate(axe);
      for (const view of await page.locator("section.view").evaluateAll((list) => list.map((s) => s.id))) {
        await page.evaluate((v) => { location.hash = v; }, view);
        await page.locator(`#${view}`).waitFor();
        await drawn(page, view);
        const found = await page.evaluate(async () => (await axe.run()).violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join(", ")}`));
        assert.deepEqual(found, [], view);
      }
    });
  }
}

test("the overview opens with the answer and a matrix that sorts", async (t) => {
  const page = await open(t, "quick", { hash: "#overview" });
  assert.match(await page.locator(".answer p").first().textContent(), /^Goodput/);
  const names = () => page.locator("table.heat tbody th").allTextContents();
  const before = await names();
  assert.match(await page.locator("table.heat").textContent(), /99 %/);
  await page.locator("table.heat thead th").nth(1).click();
  const falling = await page.locator("table.heat tbody td:nth-child(2)").evaluateAll((list) => list.map((c) => Number(c.dataset.v)));
  assert.deepEqual(falling, [...falling].sort((a, b) => b - a));
  await page.locator("table.heat thead th").first().focus();
  await page.keyboard.press("Enter");
  assert.deepEqual(await names(), [...before].sort((a, b) => a.localeCompare(b)));
});

test("two runs share their charts and legends", async (t) => {
  const page = await open(t, "both");
  for (const view of await page.locator("section.view").evaluateAll((list) => list.map((s) => s.id))) {
    await page.evaluate((v) => { location.hash = v; }, view);
    await drawn(page, view);
  }
  await page.evaluate(() => { location.hash = "throughput"; });
  const goodput = page.locator("#throughput svg").first();
  await goodput.waitFor();
  const texts = await goodput.locator("text").allTextContents();
  assert.equal(texts.indexOf("host · B"), texts.indexOf("host · A") + 1, texts.join("; "));
  await page.evaluate(() => { location.hash = "latency?c=host%20%C2%B7%20A&c=host%20%C2%B7%20B"; });
  const curves = page.locator("#latency figure:visible", { hasText: "by percentile" }).first();
  await curves.locator(".chart").evaluate((c) => c.scrollIntoView({ block: "center" }));
  await curves.locator("svg").waitFor();
  const legend = (await curves.locator("svg text").allTextContents()).filter((w) => w.startsWith("host"));
  assert.deepEqual(legend, ["host · A", "host · B"]);
  assert.ok((await curves.locator("svg path[stroke-dasharray]").count()) > 0, "B is not dashed");
});

test("a run under load draws idle and loaded round trips", async (t) => {
  const page = await open(t, "loaded", { hash: "#latency" });
  const figure = page.locator("#latency figure.pairs");
  await figure.locator("svg").waitFor();
  const texts = await figure.locator("svg text").allTextContents();
  for (const want of ["idle", "1 bulk flow", "host", "canal", "Network time p50, logarithmic"]) assert.ok(texts.includes(want), `${want} is not among ${texts}`);
  assert.equal(await figure.locator("tbody tr").count(), 8);
});

test("an address opens its view at the top", async (t) => {
  const page = await open(t, "full", { hash: "#findings" });
  await page.waitForTimeout(200);
  assert.equal(await page.evaluate(() => scrollY), 0);
});

test("the search shows contenders by name, and the address keeps them", async (t) => {
  const page = await open(t, "quick");
  await page.locator("#filter summary").click();
  await page.getByLabel("Name contains").fill("vxlan");
  assert.match(await page.evaluate(() => location.hash), /c=host&c=calico-vxlan&c=flannel-vxlan|c=host&c=flannel-vxlan&c=calico-vxlan/);
});

test("hostile names are text", async (t) => {
  const page = await open(t, "hostile");
  for (const view of await page.locator("section.view").evaluateAll((list) => list.map((s) => s.id))) {
    await page.evaluate((v) => { location.hash = v; }, view);
    await page.locator(`#${view}`).waitFor();
    await drawn(page, view);
    for (const d of await page.locator(`#${view} summary:visible`).all()) await d.click();
  }
  assert.equal(await page.evaluate(() => document.documentElement.dataset.owned ?? ""), "");
  assert.equal(await page.locator("main img, main iframe, main script").count(), 0);
  assert.ok((await page.locator("main").innerText()).includes("<script>document.documentElement"));
  await page.locator("#filter summary").click();
  const box = page.locator("#filter input").nth(1);
  await box.uncheck();
  const hash = await page.evaluate(() => location.hash);
  await page.goto(address("hostile") + hash);
  assert.equal(await page.locator("#filter input").nth(1).isChecked(), false);
});

test("hostile names fit a phone", async (t) => {
  const page = await open(t, "hostile", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
  for (const view of await page.locator("section.view").evaluateAll((list) => list.map((s) => s.id))) {
    await page.evaluate((v) => { location.hash = v; }, view);
    await page.locator(`#${view}`).waitFor();
    await drawn(page, view);
    await page.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, 360]);
    assert.ok(wide <= room, `${view} is ${wide} wide on ${room}`);
  }
});

test("addresses that make no sense show the overview", async (t) => {
  const page = await open(t, "full", { hash: "#<img src=x>?c=nobody&c=%FF&s=%3Cscript%3E&t.c=x" });
  assert.ok(await page.locator("#overview").isVisible());
});

for (const name of ["quick", "few", "ladder", "empty"]) {
  test(`${name}: every view shows`, async (t) => {
    const page = await open(t, name);
    for (const link of await page.locator("nav.views a").all()) {
      const view = new URL(await link.evaluate((a) => a.href)).hash.slice(1);
      await link.click();
      await page.locator(`#${view}`).waitFor();
      await drawn(page, view);
    }
  });
}

test("a browser that can't unpack says so, and shows the tables", async () => {
  const context = await browser.newContext();
  await context.addInitScript(() => { delete globalThis.DecompressionStream; });
  const page = await context.newPage();
  await page.goto(address("full"));
  await page.locator("#unpacked", { hasText: "can't unpack the charts" }).waitFor();
  assert.ok((await visibleRows(page, "overview").count()) >= 8);
  await context.close();
});

test("the policy keeps outside addresses out", async () => {
  const page = await browser.newPage();
  await page.goto(address("full"));
  await page.evaluate(() => {
    const image = new Image();
    image.src = "http://outside.example/x.png";
    return new Promise((done) => { image.onerror = image.onload = done; });
  });
  assert.match(await page.evaluate(() => document.documentElement.dataset.errors), /blocked: img-src http:\/\/outside\.example/);
  await page.close();
});

test("a live page follows its run and keeps what is open", async (t) => {
  const bodies = await Promise.all(["live-1", "live-2"].map((n) => readFile(`${pages}/${n}.html`, "utf8")));
  let version = 0;
  const url = "http://127.0.0.1:9/runs/1/";
  const page = await open(t, "live-1", { url, route: (r) => r.fulfill({ status: 200, contentType: "text/html; charset=utf-8", headers: { ETag: `"${version}"` }, body: r.request().method() === "HEAD" ? "" : bodies[version] }) });
  const rows = () => visibleRows(page, "overview").count();
  const before = await rows();
  await page.locator("#filter summary").click();
  await page.waitForTimeout(2500); // it has asked once and knows the version
  version = 1;
  await page.waitForFunction((n) => document.querySelectorAll("#overview tr[data-c]").length > n, before, { timeout: 15_000 });
  assert.ok(await page.locator("#filter[open]").count(), "the filter was closed");
  await page.getByRole("link", { name: "Throughput" }).click();
  await page.locator("#throughput svg").first().waitFor();
});

test("a live page says that its run can't be read until it can", async (t) => {
  const body = await readFile(`${pages}/live-1.html`, "utf8");
  let [fault, version] = [false, 0];
  const page = await open(t, "live-1", {
    url: "http://127.0.0.1:9/runs/1/", quiet: /status of 500/,
    route: (r) => {
      const head = r.request().method() === "HEAD"; // which knows of no fault before somebody asked for the whole
      if (fault && !head) return r.fulfill({ status: 500, body: "samples.jsonl: permission denied" });
      return r.fulfill({ status: 200, contentType: "text/html; charset=utf-8", headers: { ETag: `"${version}"` }, body: head ? "" : body });
    },
  });
  const says = (words) => page.waitForFunction((w) => document.getElementById("live").textContent.startsWith(w), words, { timeout: 15_000 });
  [fault, version] = [true, 1];
  await says("the run can't be read");
  await page.waitForTimeout(4500);
  await says("the run can't be read");
  fault = false;
  await page.waitForFunction(() => document.getElementById("live").textContent === "", null, { timeout: 15_000 });
});

test("a large run opens", async (t) => {
  const page = await open(t, "large");
  await page.locator("#overview tr[data-c]:visible").first().waitFor();
  await page.locator("#overview .chart").first().scrollIntoViewIfNeeded();
  await page.locator("#overview .chart svg").first().waitFor();
  const shown = await page.evaluate(() => performance.now());
  t.diagnostic(`30 contenders, 12 steps, 5 rounds: loaded after ${Math.round(shown)} ms, with its first drawing`);
  await page.evaluate(() => { location.hash = "latency"; });
  await page.locator("#latency svg").first().waitFor();
});
