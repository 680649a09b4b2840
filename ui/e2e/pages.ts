import type { Page } from 'playwright-core'

/** The pages that every check and screenshot visits, by name. */
export const pages = (ids: Record<string, string>): Record<string, string> => ({
  runs: '/p/default/runs',
  'run-failed': `/p/default/runs/${ids.failed ?? ''}`,
  'run-completed': `/p/default/runs/${ids.completed ?? ''}`,
  'run-waiting': `/p/default/runs/${ids.waiting ?? ''}`,
  'run-timeline': `/p/default/runs/${ids.parallel ?? ''}?tab=timeline`,
  'run-events': `/p/default/runs/${ids.listening ?? ''}?tab=events`,
  'run-related': `/p/default/runs/${ids.failed ?? ''}?tab=related`,
  'run-audit': `/p/default/runs/${ids.canceled ?? ''}?tab=audit`,
  'run-json': `/p/default/runs/${ids.failed ?? ''}?tab=json`,
  'run-waits': `/p/default/runs/${ids.waiting ?? ''}?tab=waits`,
  'run-logs': `/p/default/runs/${ids.script ?? ''}?step=1&pane=logs`,
  compare: `/p/default/compare?a=${ids.failed ?? ''}&b=${ids.completed ?? ''}`,
  workflows: '/p/default/workflows',
  workflow: '/p/default/workflows/shop/order',
  'workflow-source': '/p/default/workflows/shop/order?tab=source',
  'workflow-triggers': '/p/default/workflows/shop/hourly?tab=triggers',
  functions: '/p/default/functions',
  function: '/p/default/functions/price',
  'function-source': '/p/default/functions/price?tab=source',
  'function-versions': '/p/default/functions/price?tab=versions',
  events: '/p/default/events',
  event: '/p/default/events/2',
  webhooks: '/p/default/webhooks',
  webhook: '/p/default/webhooks/pager',
  'webhook-delivery': `/p/default/webhooks/pager/deliveries/${ids.delivery ?? ''}`,
  batches: '/p/default/batches',
  audit: '/p/default/audit',
  problems: '/problems',
  'all-workflows': '/workflows',
  dispatchers: '/dispatchers',
  dispatcher: '/dispatchers/default',
  workers: '/workers',
  system: '/system',
  restore: '/system/restore',
  licences: '/system/licences',
  projects: '/projects',
  project: '/projects/default',
  access: '/access',
})

/** What opens over a page: the page, and how it is opened. */
export const overlays: Record<string, [string, (page: Page) => Promise<unknown>]> = {
  'user menu': ['runs', async (page) => page.getByRole('button', { name: /^Settings of/ }).click()],
  'project menu': ['runs', async (page) => page.getByRole('button', { name: /^Project:/ }).click()],
  'export menu': ['runs', async (page) => page.getByRole('button', { name: 'Export' }).click()],
  'row menu': [
    'runs',
    async (page) =>
      page
        .getByRole('button', { name: /^Actions of run/ })
        .first()
        .click(),
  ],
  filter: ['runs', async (page) => page.getByRole('button', { name: 'Filter', exact: true }).click()],
  'run menu': ['run-failed', async (page) => page.getByRole('button', { name: 'More', exact: true }).click()],
  palette: ['runs', async (page) => page.keyboard.press('Control+k')],
  shortcuts: ['runs', async (page) => page.keyboard.press('?')],
  preview: [
    'runs',
    async (page) => {
      await page.getByRole('grid').focus()
      await page.keyboard.press('j')
      await page.keyboard.press('Space')
    },
  ],
  'run dialog': ['workflow', async (page) => page.getByRole('button', { name: 'Run…' }).click()],
  'run dialog with JSON': [
    'workflow',
    async (page) => {
      await page.getByRole('button', { name: 'Run…' }).click()
      await page.getByRole('button', { name: 'JSON', exact: true }).click()
      await page.locator('.cm-content').waitFor()
    },
  ],
  'replay dialog': [
    'run-failed',
    async (page) => {
      await page.getByRole('button', { name: 'Replay…' }).click()
      await page.getByRole('button', { name: 'Edit', exact: true }).click()
      await page.locator('.cm-content').waitFor()
    },
  ],
  'cancel dialog': ['run-waiting', async (page) => page.getByRole('button', { name: 'Cancel…' }).click()],
  'batch dialog': [
    'runs',
    async (page) => {
      await page.getByRole('grid').getByRole('checkbox').nth(1).check()
      await page.getByRole('button', { name: 'Terminate…' }).click()
      await page
        .getByText(/would not change|allows? to|refused/)
        .first()
        .waitFor()
    },
  ],
  'event dialog': ['events', async (page) => page.getByRole('button', { name: 'Send a test event…' }).click()],
  'webhook dialog': ['webhooks', async (page) => page.getByRole('button', { name: 'Create…' }).click()],
  'webhook menu': ['webhook', async (page) => page.getByRole('button', { name: 'More', exact: true }).click()],
  'redeliver dialog': ['webhook-delivery', async (page) => page.getByRole('button', { name: 'Redeliver…' }).click()],
  'problem drawer': ['problems', async (page) => page.getByRole('grid').getByRole('row').nth(1).click()],
  'problem menu': ['problems', async (page) => page.getByRole('button', { name: 'More actions' }).first().click()],
  'token dialog': ['access', async (page) => page.getByRole('button', { name: /^Create a token/ }).click()],
}

/** The pages in the state of a filter that matches nothing. */
export const noMatch = (ids: Record<string, string>): Record<string, string> => ({
  runs: '/p/default/runs?status=timed_out',
  'run-steps': `/p/default/runs/${ids.completed ?? ''}?q=nothing`,
  workflows: '/p/default/workflows?q=nothing',
  functions: '/p/default/functions?q=nothing',
  events: '/p/default/events?type=com.example.none',
  webhook: '/p/default/webhooks/pager?status=dead',
  audit: '/p/default/audit?actor=none',
  problems: '/problems?q=nothing',
  dispatchers: '/dispatchers?state=foreign',
  workers: '/workers?q=nothing',
})

/** The pages in the state of having nothing yet, as in the project `empty`. Events and the audit log have something from the first second. */
export const empty = (ids: Record<string, string>): Record<string, string> => ({
  runs: '/p/empty/runs',
  'run-events': `/p/default/runs/${ids.completed ?? ''}?tab=events`,
  'run-related': `/p/default/runs/${ids.completed ?? ''}?tab=related`,
  workflows: '/p/empty/workflows',
  functions: '/p/empty/functions',
  webhooks: '/p/empty/webhooks',
  batches: '/p/empty/batches',
  'problems-snoozed': '/problems?state=snoozed',
})

/** The pages without those that are another tab of the same page. */
export const wholePages = (ids: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(pages(ids)).filter(([, path]) => !path.includes('tab=')))

/** The pages that a viewer of one project is refused: those of another project, and of the whole installation. */
export function denied(ids: Record<string, string>): Record<string, string> {
  const { system = '', access = '' } = pages(ids)
  const other = Object.entries(wholePages(ids)).map(
    ([name, path]) => [name, path.replace(/^\/(p|dispatchers|projects)\/default/, '/$1/other')] as const,
  )
  return { ...Object.fromEntries(other.filter(([, path]) => path.includes('/other'))), system, access }
}
