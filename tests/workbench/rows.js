// The rows of the list as objects.
(() => {
  const { fields, rows } = window.LCMA_SCHEMES;
  return rows.map((row) => Object.fromEntries(fields.map((field, i) => [field, row[i]])));
})()
