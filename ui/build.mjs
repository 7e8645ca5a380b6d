// Builds the one script of the HTML report and the notices that go with it.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";

const out = "../internal/report/assets";
const read = (file) => readFileSync(`node_modules/${file}`, "utf8").replaceAll("\r\n", "\n").trim();
const version = (name) => JSON.parse(read(`${name}/package.json`)).version;

// Every copy of a report carries the bundle, so the short notices travel in
// it; the long Apache licence is a file beside it.
const short = [
  `Apache ECharts ${version("echarts")}, Apache License 2.0 (https://www.apache.org/licenses/LICENSE-2.0)\n${read("echarts/NOTICE")}`,
  `zrender ${version("zrender")}\n${read("zrender/LICENSE")}`,
  `d3, parts in ECharts\n${read("echarts/licenses/LICENSE-d3")}`,
  `tslib ${version("tslib")}\n${read("tslib/LICENSE.txt")}`,
];
const rule = `\n\n${"-".repeat(72)}\n\n`;
writeFileSync(`${out}/NOTICES.txt`, [...short, `Apache ECharts\n${read("echarts/LICENSE")}`].join(rule) + "\n");

await build({
  entryPoints: ["src/main.ts"],
  outfile: `${out}/charts.js`,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: `/*!\n${short.join(rule)}\n*/` },
  define: { "process.env.NODE_ENV": '"production"' },
});
