// Starts a platform with seeded data and keeps it until Ctrl-C: `npm run demo`. It prints its address and the IDs of its runs.
import { seed, startPlatform } from './platform'

const platform = await startPlatform()
process.stdout.write(`Run Studio with data: ${platform.address}\n`)
process.once('SIGINT', () => {
  void platform.stop().then(() => process.exit(0))
})
process.once('SIGTERM', () => {
  void platform.stop().then(() => process.exit(0))
})
process.stdout.write(`${JSON.stringify(await seed(platform), undefined, 2)}\n`)
