"use strict";

// The form of the page "Verify in your browser": text or file in, one line out.
(() => {
  const MAX_BYTES = 16 << 20;
  const [form, text, file, verdict] = ["verify", "text", "file", "verdict"].map((id) => document.getElementById(id));

  function say(kind, line) {
    verdict.className = `verdict ${kind}`;
    verdict.textContent = line;
  }

  function judge() {
    const start = performance.now();
    const answer = window.LCMA_VERIFY(text.value);
    const time = `${(performance.now() - start).toFixed(1)} ms`;
    const kind = answer.ok === null ? "unread" : answer.ok ? "valid" : "wrong";
    const how = answer.ok === null ? "Not read: " : "";
    const end = answer.ok === null ? "" : ` (${answer.format}, third factor by ${answer.convention}, ${time})`;
    say(kind, `${how}${answer.headline}${end}`);
  }

  async function take(dropped) {
    if (!dropped) return;
    if (dropped.size > MAX_BYTES) {
      say("unread", `Not read: ${dropped.name} has more than 16 MiB; use the command lcma verify`);
      return;
    }
    text.value = await dropped.text();
    judge();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    judge();
  });
  file.addEventListener("change", () => take(file.files[0]));
  text.addEventListener("dragover", (event) => event.preventDefault());
  text.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
})();
