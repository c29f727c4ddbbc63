import { defineConfig } from 'vite';

// The server writes the prefix of a site into the page's links. Modules find each other by relative
// addresses, so the same files serve every site.
export default defineConfig({
  base: './',
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2022',
    // Inlined files would need data: URLs, which the policy of the page forbids for all but images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
