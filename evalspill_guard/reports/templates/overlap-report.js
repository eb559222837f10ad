"use strict";
// Filter, sort, and step through the found rows. Without it the page shows every row in its first order.
(() => {
  const rows = document.getElementById("rows");
  const tools = document.getElementById("tools");
  if (!rows || !tools) return;
  const cards = Array.from(rows.children);
  const field = (name) => document.getElementById(`by-${name}`);
  const shown = document.getElementById("shown");
  const none = document.getElementById("none");
  const texts = new Map();
  let at = null;

  const text = (card) => {
    if (!texts.has(card)) texts.set(card, card.textContent.toLowerCase());
    return texts.get(card);
  };
  const fits = {
    status: (card, value) =>
      value === "gate" ? card.dataset.status !== "below" : card.dataset.status === value,
    kind: (card, value) => card.dataset.kind === value,
    file: (card, value) => [`e${card.dataset.eval}`, `t${card.dataset.train}`].includes(value),
    text: (card, value) => text(card).includes(value),
  };
  const wanted = () => Object.keys(fits)
    .map((name) => [fits[name], field(name).value.trim().toLowerCase()])
    .filter(([, value]) => value);
  const visible = () => Array.from(rows.children).filter((card) => !card.hidden);

  const filter = () => {
    const rules = wanted();
    let count = 0;
    for (const card of cards) {
      card.hidden = !rules.every(([fit, value]) => fit(card, value));
      count += card.hidden ? 0 : 1;
    }
    const all = cards.length;
    shown.textContent = count === all ? `All ${all} rows on this page` : `${count} of ${all} rows on this page`;
    none.hidden = count > 0;
  };
  const sort = () => {
    const key = field("order").value;
    const numbers = (card) => card.dataset[key].split(" ").map(Number);
    const compare = (a, b) => {
      const [one, two] = [numbers(a), numbers(b)];
      const first = one.findIndex((number, place) => number !== two[place]);
      return first < 0 ? 0 : one[first] - two[first];
    };
    const order = key === "page" ? cards : cards.slice().sort(compare);
    rows.append(...order);
  };
  const clear = () => {
    for (const name of Object.keys(fits)) field(name).value = "";
    filter();
  };

  const go = (card) => {
    at = card;
    try { history.replaceState(null, "", `#${card.id}`); } catch { /* some viewers have no address */ }
    for (const other of rows.querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
    card.setAttribute("aria-current", "true");
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "start" });
  };
  const step = (by) => {
    const list = visible();
    const place = list.indexOf(at);
    const next = place < 0 ? (by > 0 ? 0 : list.length - 1) : place + by;
    if (list[next]) go(list[next]);
  };
  const follow = () => {
    const card = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const missing = document.getElementById("missing");
    missing.hidden = !/^#row-\d+-\d+$/.test(location.hash) || card !== null;
    if (!card || !cards.includes(card)) return;
    if (card.hidden) clear();
    go(card);
  };

  tools.hidden = false;
  for (const name of Object.keys(fits)) field(name).addEventListener("input", filter);
  field("order").addEventListener("input", sort);
  document.getElementById("clear").addEventListener("click", clear);
  document.getElementById("next").addEventListener("click", () => step(1));
  document.getElementById("previous").addEventListener("click", () => step(-1));
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !document.getElementById("keys").checked) return;
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });
  rows.addEventListener("focusin", (event) => { at = event.target.closest("article"); });
  addEventListener("hashchange", follow);
  filter();
  follow();
})();
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details[id]")) part.open = true;
});
