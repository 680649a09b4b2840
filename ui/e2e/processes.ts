// Starts the platform as it is deployed: Temporal, an API server and a worker as processes of their own, with Postgres and Redis, so that
// a test can kill one of them and start it again. `scripts/services.sh with` starts Postgres and Redis.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { binary, freePort, here, startStock, until } from './platform'

const run = promisify(execFile)
/** The lean program, which images contain; it has no embedded Temporal. */
const lean = process.env.SIGNALBOX_SERVER_BIN ?? binary

export interface Process {
  /** Starts it and waits until it is ready, on the same port and data as before. */
  start: () => Promise<void>
  /** Ends it without warning. */
  kill: () => Promise<void>
  stop: () => Promise<void>
}

export interface Processes {
  address: string
  /** The database, as a URL. */
  database: string
  stock: string
  mendStock: () => void
  temporal: Process
  server: Process
  worker: Process
  /** Executes a statement in the database. */
  sql: (statement: string) => Promise<string>
  /** Executes a file of statements, with its variables. */
  insert: (file: string, variables: Record<string, string>) => Promise<void>
  cli: (...args: string[]) => Promise<string>
  /** Publishes the workflows of e2e/workflows. */
  publish: () => Promise<void>
  start: (workflow: string, input?: unknown) => Promise<string>
  show: (
    id: string,
  ) => Promise<{ id: string; status: string; replayOf?: string; stuck?: { code: string }; cancelRequested?: boolean }>
  stop: () => Promise<void>
}

/** A process that can be started again; its last lines are in the error when it exits by itself. */
function restartable(
  program: string,
  args: string[],
  cwd: string,
  env: Record<string, string>,
  ready: () => Promise<boolean>,
): Process {
  let child: ChildProcess | undefined
  let log = ''
  const end = async (signal: NodeJS.Signals) => {
    const running = child
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = new Promise((resolve) => running.once('exit', resolve))
    running.kill(signal)
    await ended
  }
  return {
    start: async () => {
      child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on('data', (chunk: Buffer) => {
          log = (log + chunk.toString()).slice(-20_000)
        })
      }
      await until(
        `${args.join(' ')} is ready`,
        async () => {
          if (child?.exitCode !== null) throw new Error(`it exited: ${log}`)
          return ready()
        },
        60_000,
      )
    },
    kill: async () => end('SIGKILL'),
    stop: async () => end('SIGTERM'),
  }
}

/** startProcesses prepares all processes and starts Temporal and the API server; the worker is started by the caller. */
export async function startProcesses(more: Record<string, string> = {}): Promise<Processes> {
  const [postgres, redis] = [process.env.SIGNALBOX_TEST_POSTGRES, process.env.SIGNALBOX_TEST_REDIS]
  if (postgres === undefined || redis === undefined)
    throw new Error('There is no Postgres or Redis: run this by "scripts/services.sh with".')
  const folder = mkdtempSync(join(tmpdir(), 'studio-'))
  const name = `studio_${randomBytes(8).toString('hex')}`
  const database = Object.assign(new URL(postgres), { pathname: `/${name}` }).href
  await run('psql', [postgres, '-qc', `CREATE DATABASE ${name}`])
  const [port, temporalPort, workerPort] = [await freePort(), await freePort(), await freePort()]
  const address = `http://127.0.0.1:${port}`
  writeFileSync(join(folder, 'key'), randomBytes(32).toString('base64'), { mode: 0o600 })
  const { server: stockServer, address: stock, mended } = await startStock()
  const settings = (listen: number, role: string) => ({
    SIGNALBOX_LISTEN: `127.0.0.1:${listen}`,
    SIGNALBOX_ROLES: role,
    SIGNALBOX_STORE_DRIVER: 'postgres',
    SIGNALBOX_STORE_DSN: database,
    SIGNALBOX_REDIS_URL: redis,
    SIGNALBOX_REDIS_PREFIX: `${name}:`,
    SIGNALBOX_TEMPORAL_ADDRESS: `127.0.0.1:${temporalPort}`,
    SIGNALBOX_ENCRYPTION_KEYS: `first=${join(folder, 'key')}`,
    SIGNALBOX_CALLS_ALLOW_PRIVATE: '127.0.0.0/8',
    ...more,
  })
  const answers = (listen: number) => async () => (await fetch(`http://127.0.0.1:${listen}/readyz`)).ok
  const temporal = restartable(
    binary,
    ['dev', 'temporal', '--port', String(temporalPort), '--data', join(folder, 'temporal.db')],
    folder,
    {},
    async () =>
      new Promise((resolve) => {
        const connection = spawn('bash', ['-c', `: </dev/tcp/127.0.0.1/${temporalPort}`], { stdio: 'ignore' })
        connection.on('exit', (code) => {
          resolve(code === 0)
        })
      }),
  )
  const server = restartable(lean, ['server'], folder, settings(port, 'api'), answers(port))
  const worker = restartable(lean, ['server'], folder, settings(workerPort, 'worker'), answers(workerPort))
  const cli = async (...args: string[]) =>
    (await run(binary, [...args, '--address', address], { cwd: folder, maxBuffer: 1 << 26 })).stdout
  await temporal.start()
  await server.start()
  return {
    address,
    database,
    stock,
    temporal,
    server,
    worker,
    cli,
    mendStock: () => {
      mended.value = true
    },
    sql: async (statement) => (await run('psql', [database, '-qAtc', statement])).stdout,
    insert: async (file, variables) => {
      await run('psql', [
        database,
        '-q',
        '-v',
        'ON_ERROR_STOP=1',
        ...Object.entries(variables).flatMap(([name, value]) => ['-v', `${name}=${value}`]),
        '-f',
        file,
      ])
    },
    publish: async () => {
      for (const file of readdirSync(join(here, 'workflows')))
        await cli('workflow', 'publish', join(here, 'workflows', file))
    },
    start: async (workflow, input) =>
      (
        JSON.parse(await cli('run', 'start', workflow, '--input', JSON.stringify(input ?? null), '-o', 'json')) as {
          id: string
        }
      ).id,
    show: async (id) => JSON.parse(await cli('run', 'show', id, '-o', 'json')) as { id: string; status: string },
    stop: async () => {
      await worker.stop()
      await server.stop()
      await temporal.kill()
      await run('psql', [postgres, '-qc', `DROP DATABASE ${name} WITH (FORCE)`])
      stockServer.close()
      stockServer.closeAllConnections()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
