// Values as long as the platform accepts or as other systems send them, and the pages that show them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Platform, until } from './platform'

/** The sizes at which every page is looked at. */
export const sizes = [
  [1280, 800],
  [1920, 1080],
  [390, 844],
] as const

const words = (text: string, length: number) =>
  `${text} `
    .repeat(Math.ceil(length / (text.length + 1)))
    .slice(0, length)
    .trim()
const joined = (text: string, length: number) =>
  `${text}-`.repeat(Math.ceil(length / (text.length + 1))).slice(0, length - 1) + 'x'

const workflow = { namespace: joined('department', 40), name: joined('reconciliation-of-orders', 60) }
const [listens, webhook] = [joined('listens-for-payments', 60), joined('operators-of-the-night-shift', 60)]
const [type, source] = [joined('com.example.payments.received', 100), `/${joined('shop', 90)}`]
const task = joined('readTheBalanceOfTheAccount', 60)

const definition = JSON.stringify({
  document: {
    dsl: '1.0.3',
    ...workflow,
    version: '20261128.1.0-rc.1',
    title: words('Reconciles the orders of a day with the ledger', 180),
    summary: words('Reads all orders and compares them', 300),
  },
  do: [
    { [task]: { set: { echoed: '${ . }' } } },
    {
      fails: {
        raise: {
          error: {
            type: `https://errors.example.com/${joined('ledger', 120)}`,
            status: 503,
            title: words('The ledger did not answer within its time', 180),
            detail: joined('upstream_connect_error_or_disconnect', 400),
          },
        },
      },
    },
  ],
})

const listening = JSON.stringify({
  document: { dsl: '1.0.3', namespace: workflow.namespace, name: listens, version: '1.0.0' },
  do: [{ [joined('waitForThePayment', 60)]: { listen: { to: { one: { with: { type, source } } } } } }],
})

/** seedLong makes runs, events, a webhook, a batch and a problem with long values, and returns the pages that show them, by name. */
export async function seedLong(platform: Platform): Promise<Record<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'long-'))
  for (const [name, text] of Object.entries({ fails: definition, listens: listening })) {
    writeFileSync(join(folder, `${name}.json`), text)
    await platform.cli('workflow', 'publish', join(folder, `${name}.json`))
  }
  rmSync(folder, { recursive: true })
  const name = `${workflow.namespace}/${workflow.name}`
  const started = async (of: string, ...more: string[]) =>
    (
      JSON.parse(
        await platform.cli(
          'run',
          'start',
          of,
          '--input',
          JSON.stringify({ [joined('customer', 60)]: words('a long value', 2000) }),
          ...more,
          '-o',
          'json',
        ),
      ) as { id: string }
    ).id
  const labels = [
    '--label',
    `customer=${joined('acme-international', 60)}`,
    '--label',
    `order=${joined('2026-11-28', 60)}`,
    '--label',
    `${joined('cost-centre', 50)}=${joined('4711', 60)}`,
  ]
  const failed = await started(name, ...labels)
  const waiting = await started(`${workflow.namespace}/${listens}`)
  await platform.cli(
    'webhook',
    'create',
    webhook,
    '--url',
    `${platform.stock}/stock/broken-${joined('receiver', 150)}`,
    '--type',
    type,
  )
  await platform.cli(
    'event',
    'send',
    '--id',
    joined('4c7d0e5b-payment', 120),
    '--type',
    type,
    '--source',
    `${source}-of-another-region`,
    '--subject',
    joined('order-4711', 120),
    '--data',
    '{"order":"4711"}',
  )
  const problem = await until(
    'the failure is a problem',
    async () =>
      (JSON.parse(await platform.cli('problem', 'list', '--kind', 'failure', '-o', 'json')) as { id: string }[])[0]?.id,
  )
  await platform.cli(
    'problem',
    'update',
    problem,
    '--owner',
    joined('team-of-payments', 60),
    '--note',
    words('waits for the vendor of the ledger', 400),
  )
  await platform.cli('problem', 'acknowledge', problem)
  await platform.cli(
    'batch',
    'start',
    '--action',
    'replay',
    '--workflow',
    name,
    '--reason',
    words('the ledger answers again after its maintenance', 200),
    '--yes',
  )
  const batch = await until(
    'the batch is listed',
    async () => (JSON.parse(await platform.cli('batch', 'list', '-o', 'json')) as { id: string }[])[0]?.id,
  )
  return {
    runs: '/p/default/runs',
    run: `/p/default/runs/${failed}?step=2`,
    'run-waits': `/p/default/runs/${waiting}?tab=waits`,
    compare: `/p/default/compare?a=${failed}&b=${waiting}`,
    workflows: '/p/default/workflows',
    workflow: `/p/default/workflows/${name}`,
    events: '/p/default/events',
    event: '/p/default/events/1',
    webhooks: '/p/default/webhooks',
    webhook: `/p/default/webhooks/${webhook}`,
    batches: '/p/default/batches',
    batch: `/p/default/batches/${batch}`,
    audit: '/p/default/audit',
    problems: '/problems?state=acknowledged',
    problem: `/problems?state=acknowledged&id=${problem}`,
    workers: '/workers',
    system: '/system',
  }
}
