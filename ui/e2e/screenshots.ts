// Takes a picture of every page in both themes, and of its states without data, and writes them into docs/images: `npm run screenshots`.
import { mkdirSync } from 'node:fs'
import { launch, loaded, open } from './browser'
import { pages } from './pages'
import { seed, startPlatform } from './platform'

const folder = process.env.SCREENSHOTS ?? new URL('../../docs/images/studio/', import.meta.url).pathname
mkdirSync(folder, { recursive: true })

const [platform, browser] = await Promise.all([startPlatform(), launch()])
try {
  const ids = await seed(platform)
  for (const theme of ['light', 'dark'] as const) {
    const shoot = async (name: string, path: string, before?: (view: Awaited<ReturnType<typeof open>>) => Promise<void>) => {
      const view = await open(browser, platform.address, path, { theme })
      await before?.(view)
      await view.page.screenshot({ path: `${folder}${name}-${theme}.png`, animations: 'disabled' })
      await view.context.close()
    }
    for (const [name, path] of Object.entries(pages(ids))) await shoot(name, path)
    const graph = async ({ page }: { page: import('playwright-core').Page }) => { await page.getByText('reserve', { exact: true }).first().waitFor() }
    await shoot('run-graph', `/p/default/runs/${ids.failed ?? ''}?tab=graph`, graph)
    await shoot('run-step', `/p/default/runs/${ids.failed ?? ''}?step=5`)
    await shoot('run-timeline', `/p/default/runs/${ids.parallel ?? ''}?tab=timeline`)
    await shoot('runs-no-match', '/p/default/runs?status=timed_out')
    await shoot('events-no-match', '/p/default/events?type=com.example.none')
    await shoot('batches-empty', '/p/default/batches')
    await shoot('denied', '/p/absent/runs')
    await shoot('runs-disconnected', '/p/default/runs', async ({ context, page }) => {
      await context.setOffline(true)
      await page.getByText('No connection to the server').first().waitFor({ timeout: 30_000 })
    })
    await shoot('find', '/p/default/runs', async ({ page }) => {
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog').waitFor()
    })
    await shoot('run-dialog', '/p/default/workflows/shop/order', async ({ page }) => {
      await page.getByRole('button', { name: 'Run…' }).click()
      await page.getByLabel('order', { exact: false }).first().waitFor()
    })
    await shoot('replay-dialog', `/p/default/runs/${ids.failed ?? ''}`, async ({ page }) => {
      await page.getByRole('button', { name: 'Replay…' }).click()
      await page.getByRole('button', { name: 'Edit', exact: true }).click()
      await page.locator('.cm-content').waitFor()
    })
    const phone = await open(browser, platform.address, '/p/default/runs', { theme, width: 390, height: 844 })
    await loaded(phone.page)
    await phone.page.screenshot({ path: `${folder}runs-phone-${theme}.png`, animations: 'disabled' })
    await phone.context.close()
  }
  process.stdout.write(`The pictures are in ${folder}\n`)
} finally {
  await browser.close()
  await platform.stop()
}
