import { defineConfig } from 'vitest/config'

// The tests in a browser, against the real platform. Two files at a time: each starts a platform and a browser of its own, and waits most of the time.
export default defineConfig({
  test: { include: ['e2e/**/*.e2e.ts'], testTimeout: 120_000, hookTimeout: 180_000, maxWorkers: 2 },
})
