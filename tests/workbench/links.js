// The number of links, buttons and fields, which window.LINKS holds.
(() => {
  const links = [...document.querySelectorAll("a[href], button, input[type=file], textarea")];
  window.LINKS = links.filter((link) => link.getClientRects().length && !link.disabled);
  document.activeElement.blur();
  return window.LINKS.length;
})()
