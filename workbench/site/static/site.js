"use strict";

// The list of the index: filter, search, sort, all from the keyboard; the address keeps the choice.
(() => {
  const data = window.LCMA_SCHEMES;
  const table = document.getElementById("list");
  if (!data || !table) return;

  const PAGE = 100;
  const schemes = data.rows.map((row) => Object.fromEntries(data.fields.map((field, i) => [field, row[i]])));
  for (const scheme of schemes) {
    scheme.title = scheme.name || scheme.digest.slice(0, 12);
    scheme.text = [scheme.name, scheme.target, scheme.ring, scheme.origin, scheme.digest].join(" ").toLowerCase();
    scheme.size = scheme.target.split(":")[0].split("x").reduce((product, side) => product * side, 1);
    scheme.products = scheme.half ? `${scheme.full} + ${scheme.half}/2` : String(scheme.full);
    scheme.cost = scheme.full + scheme.half / 2;
    scheme.gap = scheme.known === null ? null : scheme.cost - scheme.known;
  }

  // [heading, what is shown, what is sorted by, class]
  const columns = [
    ["Scheme", "title", "title", ""],
    ["Target", "target", "size", ""],
    ["Ring", "ring", "ring", ""],
    ["Rank", "rank", "rank", "num"],
    ["Gap", "gap", "gap", "num"],
    ["Full + half", "products", "cost", "num wide"],
    ["Additions", "additions", "additions", "num wide"],
    ["Shared", "shared", "shared", "num wide"],
    ["Nonzeros", "nonzeros", "nonzeros", "num wide"],
    ["Growth", "growth", "growth", "num wide"],
    ["Origin", "origin", "origin", "wide"],
  ];

  const input = (id) => document.getElementById(id);
  const [query, kind, ring, best, ternary] = ["q", "kind", "ring", "best", "ternary"].map(input);
  const [count, more, body] = [input("count"), input("more"), table.tBodies[0]];
  let [sorted, descending, limit, found] = [null, false, PAGE, []];

  for (const name of [...new Set(schemes.map((scheme) => scheme.ring))].sort()) {
    ring.add(new Option(name, name));
  }

  const heads = columns.map(([heading, , , style], i) => {
    const cell = document.createElement("th");
    const button = document.createElement("button");
    cell.scope = "col";
    cell.className = style;
    button.type = "button";
    button.textContent = heading;
    button.addEventListener("click", () => {
      descending = sorted === i ? !descending : false;
      sorted = i;
      show();
    });
    cell.append(button);
    table.tHead.rows[0].append(cell);
    return cell;
  });

  function heat(scheme) {
    if (scheme.gap === null) return "none";
    if (scheme.gap < 0) return "record";
    const step = [0, 0.02, 0.05, 0.1].findIndex((bound) => scheme.gap / scheme.known <= bound);
    return `g${step < 0 ? 4 : step}`;
  }

  function rowOf(scheme) {
    const row = document.createElement("tr");
    for (const [heading, shown, , style] of columns) {
      const cell = document.createElement(heading === "Scheme" ? "th" : "td");
      cell.className = style;
      if (heading === "Scheme") {
        const link = document.createElement("a");
        const name = document.createElement("bdi");
        cell.scope = "row";
        link.href = scheme.page;
        name.textContent = scheme.title.length > 60 ? `${scheme.title.slice(0, 59)}…` : scheme.title;
        link.append(name);
        cell.append(link);
      } else if (heading === "Gap") {
        const mark = document.createElement("span");
        mark.className = `gap ${heat(scheme)}`;
        mark.textContent = scheme.gap === null ? "?" : scheme.gap > 0 ? `+${scheme.gap}` : scheme.gap === 0 ? "=" : `−${-scheme.gap}`;
        mark.title = scheme.known === null ? "no figure in the tables" : `best known ${scheme.known}${scheme.half ? " full + half/2" : ""}`;
        cell.append(mark);
      } else {
        cell.textContent = scheme[shown] === null ? "" : String(scheme[shown]);
      }
      row.append(cell);
    }
    return row;
  }

  function compare(left, right) {
    const key = columns[sorted][2];
    const [x, y] = [left[key], right[key]];
    if (x === null || y === null) return (x === null) - (y === null);
    const order = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
    return descending ? -order : order;
  }

  function show() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = schemes.filter(
      (scheme) =>
        words.every((word) => scheme.text.includes(word)) &&
        (!kind.value || (kind.value === "structured") === scheme.target.includes(":")) &&
        (!ring.value || scheme.ring === ring.value) &&
        (!best.checked || scheme.best) &&
        (!ternary.checked || scheme.ternary)
    );
    if (sorted !== null) found.sort(compare);
    heads.forEach((cell, i) => {
      if (sorted === i) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    body.replaceChildren(...found.slice(0, limit).map(rowOf));
    count.textContent = `${found.length} of ${schemes.length} scheme${schemes.length === 1 ? "" : "s"}.`;
    more.hidden = found.length <= limit;
    more.textContent = `Show ${Math.min(PAGE, found.length - limit)} more`;
  }

  function remember() {
    const choice = new URLSearchParams();
    for (const field of [query, kind, ring]) if (field.value) choice.set(field.id, field.value);
    for (const box of [best, ternary]) if (box.checked) choice.set(box.id, "1");
    const text = choice.toString();
    history.replaceState(null, "", text ? `#?${text}` : location.hash.startsWith("#?") ? "#schemes" : location.hash || "#");
  }

  function recall() {
    if (!location.hash.startsWith("#?")) return;
    const choice = new URLSearchParams(location.hash.slice(2));
    for (const field of [query, kind, ring]) field.value = choice.get(field.id) || "";
    for (const box of [best, ternary]) box.checked = choice.has(box.id);
  }

  function changed() {
    limit = PAGE;
    show();
    remember();
  }

  for (const field of [query, kind, ring, best, ternary]) field.addEventListener("input", changed);
  query.form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => {
    const first = limit;
    limit += PAGE;
    show();
    body.rows[first].querySelector("a").focus();
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const from = event.target instanceof Element ? event.target : document.body;
    const typing = from.closest("input:not([type=checkbox], [type=radio]), select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      query.focus();
      query.select();
    } else if (event.key === "Escape" && event.target === query && query.value) {
      event.preventDefault();
      query.value = "";
      changed();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const links = [...body.querySelectorAll("a")];
      const at = links.indexOf(document.activeElement);
      if (event.target !== query && at < 0) return;
      event.preventDefault();
      const to = event.key === "ArrowDown" ? at + 1 : at - 1;
      if (to < 0) query.focus();
      else if (links[to]) links[to].focus();
    }
  });

  recall();
  show();
  window.addEventListener("hashchange", () => {
    recall();
    show();
  });
})();

// Buttons that copy a text, where the browser can.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
  });
}
