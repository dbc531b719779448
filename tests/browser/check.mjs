// Opens pages in Chromium as a reader would, and prints what is wrong as JSON: { faults: [..] }.
//   CHROMIUM=/usr/bin/chromium node check.mjs FOLDER_OF_PICTURES PAGE.html...
// VIEW=phone-light looks at one way to see a page instead of four.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [pictures, ...pages] = process.argv.slice(2);
const faults = [];
const DESKTOP = { name: "desktop-light", width: 1280, height: 900, scheme: "light" };
const VIEWS = [
  DESKTOP,
  { name: "desktop-dark", width: 1280, height: 900, scheme: "dark" },
  { name: "phone-light", width: 390, height: 844, scheme: "light" },
  { name: "phone-dark", width: 390, height: 844, scheme: "dark" },
].filter((view) => !process.env.VIEW || view.name === process.env.VIEW);

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--hide-scrollbars", "--force-color-profile=srgb"], // root has no sandbox
});
try {
  for (const path of pages) for (const view of VIEWS) await look(path, view);
  for (const path of pages) {
    await use(path);
    await withoutScript(path);
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify({ faults, version: await axeVersion() }));

async function open(path, view, prepare = async () => {}) {
  const page = await browser.newPage();
  const say = (what) => faults.push(`${basename(path)}, ${view.name}: ${what}`);
  page.on("console", (message) => say(`console: ${message.text()}`));
  page.on("pageerror", (error) => say(`error: ${error.message}`));
  page.on("dialog", async (dialog) => {
    say(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on("request", (request) => {
    if (request.url() !== pathToFileURL(path).href) say(`asked for ${request.url()}`);
  });
  await page.setViewport({ width: view.width, height: view.height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: view.scheme }]);
  await prepare(page);
  await page.goto(pathToFileURL(path).href);
  return { page, say };
}

async function look(path, view) {
  const { page, say } = await open(path, view);
  await page.screenshot({ path: join(pictures, `${basename(path, ".html")}-${view.name}.png`), fullPage: true });
  // Everything that can be opened is looked at too.
  await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 0) say(`the page is ${wide} px wider than the screen`);
  await page.evaluate(axe); // the devtools protocol, which the page's own policy does not stop
  const found = await page.evaluate(() =>
    axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      resultTypes: ["violations"],
    }),
  );
  for (const one of found.violations)
    say(`axe ${one.id}: ${one.help}; ${one.nodes.length} times, such as ${one.nodes[0].html.slice(0, 160)}`);
  await page.close();
}

async function use(path) {
  const { page, say } = await open(path, { ...DESKTOP, name: "used" });
  const shown = () => page.$$eval(".card:not([hidden])", (rows) => rows.map((row) => row.dataset.cell));
  const grid = () => page.$$eval("#fit-grid tbody tr:not([hidden])", (rows) => rows.map((row) => row.dataset.cell));
  const count = () => page.$eval("#count", (one) => one.textContent);
  const all = await shown();

  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.className);
  if (first !== "skip") say(`the first stop of the Tab key is ${first}, not the skip link`);
  const seen = new Set();
  for (let step = 0; step < 400; step += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const one = document.activeElement;
      if (one === document.body) return null;
      const style = getComputedStyle(one);
      return { id: one.id || one.className || one.tagName, ring: style.outlineStyle !== "none" };
    });
    if (at === null) break;
    seen.add(at.id);
    if (!at.ring) say(`${at.id} shows no ring when the keyboard is on it`);
  }
  for (const wanted of ["q", "copy", "scroll"]) if (!seen.has(wanted)) say(`the Tab key never reaches ${wanted}`);

  await page.type("#q", "debian13");
  const some = await shown();
  const right = all.filter((name) => name.includes("debian13"));
  if (some.join() !== right.join()) say(`searching debian13 shows ${some}, not ${right}`);
  if ((await grid()).join() !== right.join()) say("the grid shows other images than the cards");
  if (!(await count()).startsWith(`${right.length} of ${all.length} images`)) say(`the count says ${await count()}`);
  await page.$eval("#q", (field) => {
    field.value = "no such thing";
    field.dispatchEvent(new Event("input"));
  });
  if ((await shown()).length) say("a search for nothing shows images");

  await page.$eval("#q", (field) => {
    field.value = "";
    field.dispatchEvent(new Event("input"));
  });
  await page.click(".copy");
  await page.waitForFunction(() => document.getElementById("said").textContent !== "");
  const told = await page.$eval("#said", (one) => one.textContent);
  const wanted = await page.$eval(".card code[id]", (one) => one.textContent);
  if (told !== `Copied ${wanted}`) say(`the copy button says ${told}`);
  await page.close();
}

async function withoutScript(path) {
  const { page, say } = await open(path, { ...DESKTOP, name: "without script" }, (one) =>
    one.setJavaScriptEnabled(false),
  );
  const tree = JSON.stringify(await page.accessibility.snapshot());
  for (const word of ["Copy", "Search images"]) if (tree.includes(`"${word}`)) say(`${word} is there and does nothing`);
  for (const word of ["docker pull", "Where each image runs"]) if (!tree.includes(word)) say(`${word} is not there`);
  await page.close();
}

async function axeVersion() {
  return JSON.parse(readFileSync(require.resolve("axe-core/package.json"), "utf8")).version;
}
