// Runs a TypeScript program of this folder: node build/run.js e2e/demo.ts
import { runnerImport } from 'vite'

await runnerImport(process.argv[2] ?? '', { configFile: false, logLevel: 'error' })
