"use strict";
window.addEventListener("error", (event) => {
  document.body.dataset.error = (document.body.dataset.error || "") + event.message + "\n";
});
