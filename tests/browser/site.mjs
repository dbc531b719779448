// Opens the docs site in Chromium, from a server on this machine, and prints what is wrong as JSON: { faults: [..] }.
//   CHROMIUM=/usr/bin/chromium node site.mjs FOLDER_OF_PICTURES FOLDER_OF_THE_SITE '[{"path": …, "search": …, "hit": …}]'
// VIEW=phone-light looks at one way to see a page instead of four.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";
import puppeteer from "puppeteer-core";

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [pictures, site, wanted] = process.argv.slice(2);
const faults = [];
const VIEWS = [
  { name: "desktop-light", width: 1280, height: 900, scheme: "light" },
  { name: "desktop-dark", width: 1280, height: 900, scheme: "dark" },
  { name: "phone-light", width: 390, height: 844, scheme: "light" },
  { name: "phone-dark", width: 390, height: 844, scheme: "dark" },
].filter((view) => !process.env.VIEW || view.name === process.env.VIEW);
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
};

const server = createServer(async (request, response) => {
  let path = join(site, normalize(decodeURIComponent(new URL(request.url, "http://x").pathname)));
  try {
    if ((await stat(path)).isDirectory()) path = join(path, "index.html");
    const body = await readFile(path);
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404).end("not here");
  }
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const base = `http://127.0.0.1:${server.address().port}/`;
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--hide-scrollbars", "--force-color-profile=srgb"], // root has no sandbox
});
try {
  for (const one of JSON.parse(wanted)) for (const view of VIEWS) await look(one, view);
} finally {
  await browser.close();
  server.close();
}
console.log(JSON.stringify({ faults }));

async function look(one, view) {
  const page = await browser.newPage();
  const say = (what) => faults.push(`${one.path}, ${view.name}: ${what}`);
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) say(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => say(`error: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(base) && !url.startsWith("data:") && !url.startsWith("blob:")) say(`asked for ${url}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) say(`${response.status()} ${response.url().replace(base, "")}`);
  });
  await page.setViewport({ width: view.width, height: view.height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: view.scheme }]);
  await page.goto(base + one.path, { waitUntil: "networkidle0" });
  const name = `site-${one.path.replace(/\W+/g, "-")}-${view.name}`;
  await page.screenshot({ path: join(pictures, `${name}.png`) });
  // The theme lets the article scroll sideways, not the page.
  const wide = await page.evaluate(() =>
    [document.documentElement, document.querySelector(".bd-article-container")].map((node) => node.scrollWidth - node.clientWidth),
  );
  if (Math.max(...wide) > 0) say(`wider than the screen by ${wide} px`);
  const shade = await page.evaluate(() => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
    return (red + green + blue) / 3 < 128 ? "dark" : "light";
  });
  if (shade !== view.scheme) say(`it is ${shade}`);
  await judge(page, say);
  const language = await page.evaluate(() => document.documentElement.lang);
  if (language !== one.lang) say(`it says to be in ${language}`);
  const text = await page.evaluate(() => document.body.innerText);
  for (const word of ["<!--", "run: host", "sh run", "toctree"]) if (text.includes(word)) say(`it shows ${word}`);

  await search(page, one, say);
  await page.screenshot({ path: join(pictures, `${name}-search.png`) });
  await judge(page, say);
  await page.close();
}

async function judge(page, say) {
  await page.evaluate(axe);
  const found = await page.evaluate(() =>
    axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
      resultTypes: ["violations"],
    }),
  );
  for (const each of found.violations)
    say(`axe ${each.impact} ${each.id}: ${each.help}; ${each.nodes.length} times, such as ${each.nodes[0].html.slice(0, 160)}`);
}

async function search(page, one, say) {
  const shown = () =>
    page.evaluate(() => {
      const all = (root) => [
        ...root.querySelectorAll("pagefind-results a"),
        ...[...root.querySelectorAll("*")].flatMap((node) => (node.shadowRoot ? all(node.shadowRoot) : [])),
      ];
      return all(document).map((link) => link.href);
    });
  await page.keyboard.down("Control");
  await page.keyboard.press("k");
  await page.keyboard.up("Control");
  await page.waitForSelector("pagefind-modal dialog[open], pagefind-modal [role=dialog]", { timeout: 10000 });
  await page.keyboard.type(one.search);
  for (let step = 0; step < 100 && !(await shown()).length; step += 1) await new Promise((go) => setTimeout(go, 100));
  const hits = await shown();
  if (!hits.some((hit) => hit.includes(one.hit))) say(`searching ${one.search} finds ${hits.slice(0, 5)}, not ${one.hit}`);
  for (const hit of hits.slice(0, 5)) {
    const path = new URL(hit).pathname.slice(1);
    await stat(join(site, path)).catch(() => say(`a hit leads nowhere: ${path}`));
  }
}
