import { defineConfig } from 'vitest/config'

// The tests in a browser, against the real platform: one after the other, because two cores run the platform and the browser.
export default defineConfig({
  test: { include: ['e2e/**/*.e2e.ts'], testTimeout: 120_000, hookTimeout: 180_000, fileParallelism: false },
})
