"use strict";
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const cards = all(".card[data-search]");
  const followers = all("[data-cell]:not(.card)");
  const gone = all(".gone[data-search]");
  const why = all("details.why");
  const field = document.getElementById("q");
  const count = document.getElementById("count");
  const said = document.getElementById("said");
  const finder = document.getElementById("search");

  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hit = (row) => words.every((word) => row.dataset.search.includes(word));
    const shown = new Set();
    for (const card of cards) {
      card.hidden = !hit(card);
      if (!card.hidden) shown.add(card.dataset.cell);
    }
    for (const row of followers) row.hidden = !shown.has(row.dataset.cell);
    let left = 0;
    for (const row of gone) {
      row.hidden = !hit(row);
      if (!row.hidden) left += 1;
    }
    for (const group of why) group.hidden = !group.querySelector(".gone:not([hidden])");
    count.textContent = words.length
      ? `${shown.size} of ${cards.length} images, ${left} of ${gone.length} not built`
      : `${cards.length} images`;
  };

  const copy = async (button) => {
    const code = document.getElementById(button.dataset.copy);
    let done = false;
    try {
      await navigator.clipboard.writeText(code.textContent);
      done = true;
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      done = document.execCommand("copy");
    }
    said.textContent = "";
    said.textContent = done ? `Copied ${code.textContent}` : "Selected; copy it with the keyboard";
    button.classList.toggle("done", done);
    setTimeout(() => button.classList.remove("done"), 2000);
  };

  finder.hidden = false;
  field.addEventListener("input", filter);
  for (const button of all("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  filter();
})();
