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
