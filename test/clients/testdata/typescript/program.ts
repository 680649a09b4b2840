// Uses the client whose types are generated from the OpenAPI document, and prints what the server answered.
//
// Usage: node program.js FILE, the source of a workflow. SIGNALBOX_ADDRESS is the URL of the server, SIGNALBOX_TOKEN a token of an
// administrator.
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import createClient, { type Client } from 'openapi-fetch'
import type { components, paths } from './signalbox'

type Schemas = components['schemas']

const address = process.env.SIGNALBOX_ADDRESS ?? ''
const project = 'default'
// All calls together take at most this time.
const deadline = AbortSignal.timeout(120_000)

/** connect makes a client. Its calls have no token if token is empty. */
function connect(token: string): Client<paths> {
  return createClient<paths>({ baseUrl: address, signal: deadline, headers: token === '' ? {} : { Authorization: `Bearer ${token}` } })
}

const api = connect(process.env.SIGNALBOX_TOKEN ?? '')

/** answered returns the data of a call that succeeded. */
function answered<T>(call: string, { data, error }: { data?: T; error?: Schemas['Error'] }): T {
  if (data === undefined) throw new Error(`${call}: the answer is ${JSON.stringify(error)}`)
  return data
}

/** refused reads the members of an error. */
function refused(call: string, { error, response }: { error?: Schemas['Error']; response: Response }): { status: number; code: number; reason: string } {
  if (error === undefined) throw new Error(`${call}: the call is not refused`)
  const info = error.details?.find((detail) => detail['@type'] === 'type.googleapis.com/google.rpc.ErrorInfo')
  return { status: response.status, code: error.code, reason: info?.reason ?? '' }
}

/** idOf returns the ID of a run that exists: only the run of a dry run has none. */
function idOf({ id }: Schemas['Run']): string {
  return id ?? ''
}

/** complete starts a run and reads it until it has ended. */
async function complete(workflow: string): Promise<Schemas['Run']> {
  const id = idOf(answered('start a run', await api.POST('/v1/projects/{project}/runs', {
    params: { path: { project } }, body: { workflow, input: { name: 'Ada' } },
  })).run)
  const ended: Schemas['RunStatus'][] = ['completed', 'failed', 'canceled', 'terminated', 'timed_out']
  for (;;) {
    const { run } = answered('read the run', await api.GET('/v1/projects/{project}/runs/{id}', { params: { path: { project, id } } }))
    if (ended.includes(run.status)) return run
    await setTimeout(50, undefined, { signal: deadline })
  }
}

async function list(workflow: string, statuses: Schemas['RunStatus'][]): Promise<string[]> {
  const { runs } = answered('list runs', await api.GET('/v1/projects/{project}/runs', { params: { path: { project }, query: { workflow, statuses } } }))
  return runs.map(idOf)
}

/** publish publishes an event about a run, with an extension attribute, and returns the IDs that were accepted. */
async function publish(run: Schemas['Run']): Promise<string[]> {
  const { accepted } = answered('publish an event', await api.POST('/v1/projects/{project}/events', {
    params: { path: { project } },
    headers: { 'Content-Type': 'application/cloudevents+json' },
    body: { specversion: '1.0', id: `of-${idOf(run)}`, source: '/clients', type: 'com.example.run.ended', time: run.endTime, data: { run: idOf(run) }, attempt: 1 },
  }))
  return accepted.map((event) => event.id)
}

const source = readFileSync(process.argv[2] ?? '', 'utf8')
const published = answered('publish', await api.POST('/v1/projects/{project}/workflows:publish', { params: { path: { project } }, body: { source } }))
const workflow = published.workflow.name
const read = answered('read the workflow', await api.GET('/v1/projects/{project}/workflows/{workflow}', { params: { path: { project, workflow } } }))
const run = await complete(workflow)
const output = run.output as { message: string }

const unknown = { params: { path: { project, id: 'unknown' } } }
const { secret } = answered('create a token', await api.POST('/v1/tokens', { body: { name: 'viewer-of-typescript', roles: { [project]: 'viewer' } } }))

process.stdout.write(JSON.stringify({
  workflow: read.workflow.name,
  run: idOf(run),
  status: run.status,
  message: output.message,
  listed: await list(workflow, ['completed', 'failed']),
  failed: await list(workflow, ['failed']),
  accepted: await publish(run),
  unknown: refused('read an unknown run', await api.GET('/v1/projects/{project}/runs/{id}', unknown)),
  withoutToken: refused('read a run without a token', await connect('').GET('/v1/projects/{project}/runs/{id}', unknown)),
  withoutRole: refused('start a run as a viewer', await connect(secret).POST('/v1/projects/{project}/runs', { params: { path: { project } }, body: { workflow } })),
}))
