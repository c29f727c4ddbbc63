// The API reference. Tokens stay in memory: persistAuthorization is off.
const element = document.getElementById('reference');
window.ui = SwaggerUIBundle({
  url: element.dataset.document,
  domNode: element,
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: false,
  validatorUrl: null,
  queryConfigEnabled: false,
  showMutatedRequest: false,
});

// Swagger UI leaves out some names that screen readers need, hides one that is visible, nests links in
// buttons, and has regions that scroll only with a mouse. The button of an operation sets the same
// address as the link in it.
function makeAccessible() {
  document.getElementById('servers')?.setAttribute('aria-label', 'Server');
  for (const button of element.querySelectorAll('.close-modal')) button.setAttribute('aria-label', 'Close');
  for (const button of element.querySelectorAll('.auth-btn-wrapper .authorize')) button.removeAttribute('aria-label');
  for (const link of element.querySelectorAll('.opblock-summary-control a[href]')) link.removeAttribute('href');
  for (const code of element.querySelectorAll('.microlight')) code.tabIndex = 0;
}
new MutationObserver(makeAccessible).observe(element, { childList: true, subtree: true });
