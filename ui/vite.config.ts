import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

// `npm start` serves the sources and forwards calls to a running `signalbox dev`.
const api = process.env.SIGNALBOX_ADDRESS ?? 'http://127.0.0.1:8080'

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: '../internal/webui/dist',
    emptyOutDir: false,
    target: 'es2023',
    // Inlined assets would need `data:` sources that the content security policy does not allow.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            // A page's code would else be a dozen files of a few hundred bytes, and each costs about a millisecond. What only two parts use is
            // not loaded first.
            { name: 'icons', test: /lucide-react/ },
            { name: 'shared', test: /ui\/src\/(?!gen\/)|react-query/, minShareCount: 3, maxModuleSize: 20_000 },
          ],
        },
      },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ['/signalbox.v1', '/v1/', '/readyz'].map((path) => [
        path,
        { target: api, changeOrigin: true, headers: { Origin: api } },
      ]),
    ),
  },
  test: {
    setupFiles: ['build/browser.js'],
    include: ['src/**/*.test.ts', 'build/**/*.test.js'],
    // A busy machine is no failure.
    testTimeout: 60_000,
  },
})
