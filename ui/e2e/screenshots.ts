// Takes a picture of every page in both themes, on a screen and on a phone, of what opens over it, and of its states: empty, no match, denied
// and disconnected; in the light theme also with long values at three sizes, and while Temporal is down. Writes them into
// docs/images/studio: `npm run screenshots`. ONLY=text takes those with the text in their names.
import { mkdirSync } from 'node:fs'
import type { Cookie, Page } from 'playwright-core'
import { launch, loaded, type Observed, open, type View } from './browser'
import { seedLong, sizes } from './longvalues'
import { denied, empty, noMatch, overlays, pages, wholePages } from './pages'
import { seed, startPlatform, startServer, until } from './platform'
import { startProcesses } from './processes'

const folder = process.env.SCREENSHOTS ?? new URL('../../docs/images/studio/', import.meta.url).pathname
const only = process.env.ONLY ?? ''
mkdirSync(folder, { recursive: true })

interface Picture {
  name: string
  path: string
  /** Where it is taken: as a viewer of one project, on a platform with long values, or on one without Temporal, in place of the administrator of the platform with data. */
  at?: 'viewer' | 'long' | 'outage'
  view?: View
  /** Brings the page into the state of the picture. */
  before?: (seen: Observed) => Promise<unknown>
}

const disconnect = async ({ context, page }: Observed) => {
  await context.setOffline(true)
  await page.getByText('No connection to the server').first().waitFor({ timeout: 30_000 })
}
const graph = async ({ page }: Observed) => page.getByText('reserve', { exact: true }).first().waitFor()
const shown = async ({ page }: Observed) => page.locator('[role=dialog], [role=menu]').first().waitFor()
const from = (paths: Record<string, string>, suffix: string, more: Partial<Picture> = {}): Picture[] =>
  Object.entries(paths).map(([name, path]) => ({ name: name + suffix, path, ...more }))

/** All pictures, by the IDs of the seeded runs, the pages with long values, and the run that waits while Temporal is down. */
function pictures(ids: Record<string, string>, long: Record<string, string>, stopped: string): Picture[] {
  const all = pages(ids)
  const outage = {
    runs: '/p/default/runs',
    run: `/p/default/runs/${stopped}`,
    problems: '/problems',
    dispatchers: '/dispatchers',
    workers: '/workers',
    system: '/system',
  }
  return [
    ...from(all, ''),
    { name: 'run-graph', path: `/p/default/runs/${ids.failed ?? ''}?tab=graph`, before: graph },
    { name: 'run-step', path: `/p/default/runs/${ids.failed ?? ''}?step=5` },
    { name: 'sign-in', path: '/sign-in', at: 'viewer' as const, view: { cookies: [] } },
    ...from(all, '-phone', { view: { width: 390, height: 844 } }),
    ...sizes.flatMap(([width, height]) =>
      from(long, `-long-${String(width)}`, { at: 'long', view: { width, height } }),
    ),
    ...[1280, 390].flatMap((width) =>
      from(outage, `-outage-${String(width)}`, { at: 'outage', view: { width, height: 844 } }),
    ),
    ...Object.entries(overlays).map(([name, [at, show]]): Picture => ({
      name: name.toLowerCase().replaceAll(' ', '-'),
      path: all[at] ?? '',
      before: async (seen) => {
        await show(seen.page)
        await shown(seen)
      },
    })),
    ...from(empty(ids), '-empty'),
    ...from(noMatch(ids), '-no-match'),
    ...from(denied(ids), '-denied', { at: 'viewer' }),
    ...from(wholePages(ids), '-disconnected', { before: disconnect }),
  ].filter(({ name }) => name.includes(only))
}

/** session signs in and returns the cookies. */
async function session(page: Page, token: string): Promise<Cookie[]> {
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL((url) => !url.pathname.startsWith('/sign-in'))
  const cookies = await page.context().cookies()
  await page.context().close()
  return cookies
}

/** inOutage starts a platform whose Temporal is down while a run waits, and returns it with the ID of that run. */
async function inOutage() {
  const processes = await startProcesses()
  await processes.worker.start()
  await processes.publish()
  const stopped = await processes.start('wait')
  await until('the run waits', async () => (await processes.show(stopped)).status === 'waiting')
  await processes.temporal.kill()
  return { processes, stopped }
}

const [platform, server, longPlatform, { processes, stopped }, browser] = await Promise.all([
  startPlatform(),
  startServer(),
  startPlatform(),
  inOutage(),
  launch(),
])
const origins = { viewer: server.address, long: longPlatform.address, outage: processes.address }
const failed: string[] = []
try {
  await platform.cli('project', 'create', 'empty')
  const [ids, long] = [await seed(platform), await seedLong(longPlatform)]
  const cookies = await session((await open(browser, server.address, '/sign-in')).page, server.viewer)
  for (const theme of ['light', 'dark'] as const) {
    for (const { name, path, at, view = at === 'viewer' ? { cookies } : {}, before } of pictures(ids, long, stopped)) {
      if (theme === 'dark' && (at === 'long' || at === 'outage')) continue
      let seen: Observed | undefined
      try {
        seen = await open(browser, at === undefined ? platform.address : origins[at], path, { ...view, theme })
        await before?.(seen)
        if (before !== disconnect) await loaded(seen.page)
        await seen.page.screenshot({ path: `${folder}${name}-${theme}.png`, animations: 'disabled' })
      } catch (error) {
        failed.push(
          `${name}-${theme}: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`,
        )
      } finally {
        await seen?.context.close()
      }
    }
  }
  process.stdout.write(`The pictures are in ${folder}\n`)
} finally {
  await browser.close()
  await Promise.all([platform.stop(), server.stop(), longPlatform.stop(), processes.stop()])
}
if (failed.length > 0) {
  process.stderr.write(`Not taken:\n${failed.join('\n')}\n`)
  process.exitCode = 1
}
