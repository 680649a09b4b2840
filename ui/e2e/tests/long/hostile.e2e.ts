// Text that a person or another system chose is shown as text on every page, whatever it is: it makes no element and runs no script.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, loaded, open } from '../../browser'
import { type Platform, startPlatform, until } from '../../platform'

let platform: Platform
let browser: Browser

/** Each text names its place, so that the page that shows it can be checked. */
const hostile = (place: string) =>
  `<img src=x data-hostile onerror=window.hostile=1>${place}</script><script>window.hostile=2</script>`

const document = JSON.stringify({
  document: {
    dsl: '1.0.3',
    namespace: 'hostile',
    name: 'texts',
    version: '1.0.0',
    title: hostile('title'),
    summary: hostile('summary'),
  },
  do: [
    { [hostile('task')]: { set: { echoed: '${ . }' } } },
    {
      fails: {
        raise: {
          error: {
            type: 'https://example.com/hostile',
            status: 500,
            title: hostile('error'),
            detail: hostile('detail'),
          },
        },
      },
    },
  ],
})

let id = ''
let problem = ''

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
  const folder = mkdtempSync(join(tmpdir(), 'hostile-'))
  writeFileSync(join(folder, 'texts.json'), document)
  await platform.cli('workflow', 'publish', join(folder, 'texts.json'))
  rmSync(folder, { recursive: true })
  const input = JSON.stringify({ [hostile('key')]: hostile('value') })
  id = (
    JSON.parse(
      await platform.cli(
        'run',
        'start',
        'hostile/texts',
        '--input',
        input,
        '--label',
        `note=${hostile('label')}`,
        '-o',
        'json',
      ),
    ) as { id: string }
  ).id
  problem = await until('the failure is a problem', async () => {
    const problems = JSON.parse(await platform.cli('problem', 'list', '--kind', 'failure', '-o', 'json')) as {
      id: string
    }[]
    return problems[0]?.id
  })
  await platform.cli('problem', 'acknowledge', problem, '--note', hostile('remark'))
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

describe('a hostile text', () => {
  // Per page: the places whose texts it shows.
  const pages: [string, () => string, string[]][] = [
    ['the list of runs', () => '/p/default/runs', ['error']],
    ['a run', () => `/p/default/runs/${id}`, ['error', 'task', 'label']],
    ['its step that failed', () => `/p/default/runs/${id}?step=2&pane=error`, ['error', 'detail']],
    ['its graph', () => `/p/default/runs/${id}?tab=graph`, ['task']],
    ['its timeline', () => `/p/default/runs/${id}?tab=timeline`, ['task']],
    ['its audit', () => `/p/default/runs/${id}?tab=audit`, []],
    ['its JSON', () => `/p/default/runs/${id}?tab=json`, ['label']],
    ['an input', () => `/p/default/runs/${id}?step=1&pane=input`, ['key', 'value']],
    ['the workflows', () => '/p/default/workflows', ['title']],
    ['a workflow', () => '/p/default/workflows/hostile/texts', ['title']],
    ['the problems', () => `/problems?state=acknowledged&id=${problem}`, ['remark', 'error']],
    ['the audit', () => '/p/default/audit', []],
    ['the system', () => '/system', []],
  ]
  it.each(pages)('is text on the page of %s', async (_, path, places) => {
    const { context, page, faults } = await open(browser, platform.address, path())
    await loaded(page)
    for (const place of places)
      await page.getByText(`onerror=window.hostile=1>${place}`).first().waitFor({ state: 'attached', timeout: 15_000 })
    expect(await page.locator('[data-hostile]').count()).toBe(0)
    expect(await page.evaluate(() => (window as { hostile?: number }).hostile)).toBeUndefined()
    expect(faults).toEqual([])
    await context.close()
  })
})
