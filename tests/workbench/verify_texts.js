// Read a JSON list of texts on stdin, print the list of what the browser's verifier says of each, with milliseconds.
"use strict";
require(process.argv[2]);
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answers = texts.map((text) => {
  const start = performance.now();
  return { ...globalThis.LCMA_VERIFY(text), milliseconds: performance.now() - start };
});
process.stdout.write(JSON.stringify(answers));
