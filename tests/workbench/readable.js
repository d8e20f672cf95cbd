// The texts of a page that are small or have little contrast: some of them, or how many texts there are.
(() => {
  const parse = (color) => (color.match(/[\d.]+/g) || []).map(Number);
  const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const bad = [];
  let seen = 0;
  for (const element of document.querySelectorAll("main *, header *, footer")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const style = getComputedStyle(element);
    if (!own || element.closest("svg, sub, .unseen, noscript, .skip, option")) continue;
    if (!element.getClientRects().length) continue;
    seen += 1;
    let behind = element;
    while (behind && (parse(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
    const pair = [parse(style.color), parse(behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)")];
    const [low, high] = pair.map(light).sort((x, y) => x - y);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    if (ratio < 4.5 || size < 14) bad.push([element.outerHTML.slice(0, 80), ratio, size]);
  }
  return seen > 50 ? bad.slice(0, 5) : ["too few texts", seen];
})()
