// Starts the real platform for tests and screenshots: `signalbox dev` on free ports, with its data in a folder of its own, and a small
// HTTP service that the workflows call.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createServer as createTCPServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const here = new URL('.', import.meta.url).pathname
export const binary = process.env.SIGNALBOX_BIN ?? join(here, '../../bin/signalbox')

/** freePort returns a port that nothing listens on. */
export async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createTCPServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => {
        if (address === null || typeof address === 'string') reject(new Error('no port'))
        else resolve(address.port)
      })
    })
  })
}

/** until repeats a check until it holds, and fails with its last error after the time. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false>,
  milliseconds = 30_000,
): Promise<T> {
  const end = Date.now() + milliseconds
  let last: unknown
  for (;;) {
    try {
      const value = await check()
      if (value !== undefined && value !== false) return value
    } catch (error) {
      last = error
    }
    if (Date.now() > end)
      throw new Error(`${what}: not within ${milliseconds} ms${last instanceof Error ? `: ${last.message}` : ''}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/**
 * The stock service: `/stock/<sku>` reserves; a SKU that begins with "broken" is answered with 503, "gone" with 404, and "slow" after half
 * a second.
 */
export async function startStock(): Promise<{ server: Server; address: string; mended: { value: boolean } }> {
  const mended = { value: false }
  const server = createServer((request, response) => {
    const sku = request.url?.split('/').pop() ?? ''
    request.resume()
    const status = sku.startsWith('broken') && !mended.value ? 503 : sku.startsWith('gone') ? 404 : 200
    setTimeout(
      () => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(status === 200 ? { reserved: sku } : { title: 'stock service did not answer' }))
      },
      sku.startsWith('slow') ? 500 : 0,
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no address')
  return { server, address: `http://127.0.0.1:${address.port}`, mended }
}

export interface Platform {
  address: string
  stock: string
  /** The service answers from now on, also for broken SKUs. */
  mendStock: () => void
  /** Runs the command line tool and returns its output. */
  cli: (...args: string[]) => Promise<string>
  /** Starts a run and returns its ID. */
  start: (workflow: string, input?: unknown) => Promise<string>
  /** Kills the process without warning; `boot` starts it again on the same port with the same data. */
  kill: () => Promise<void>
  boot: () => Promise<void>
  stop: () => Promise<void>
}

/** startPlatform starts a platform with the workflows of e2e/workflows, in the project `default`. */
export async function startPlatform(): Promise<Platform> {
  const folder = mkdtempSync(join(tmpdir(), 'studio-'))
  const [port, temporalPort] = [await freePort(), await freePort()]
  const address = `http://127.0.0.1:${port}`
  const { server, address: stock, mended } = await startStock()
  let child: ChildProcess | undefined
  let log = ''

  const boot = async () => {
    child = spawn(
      binary,
      [
        'dev',
        '--listen',
        `127.0.0.1:${port}`,
        '--temporal-port',
        String(temporalPort),
        '--data-dir',
        join(folder, 'data'),
        '--publish',
        join(here, 'workflows'),
      ],
      { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        log = (log + chunk.toString()).slice(-20_000)
      })
    }
    await until(
      'the platform is ready',
      async () => {
        if (child?.exitCode !== null) throw new Error(`signalbox dev exited: ${log}`)
        return (await fetch(`${address}/readyz`)).ok
      },
      60_000,
    )
  }
  const end = async (signal: NodeJS.Signals) => {
    const running = child
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = new Promise((resolve) => running.once('exit', resolve))
    running.kill(signal)
    await ended
  }
  const cli = async (...args: string[]) =>
    new Promise<string>((resolve, reject) => {
      const command = spawn(binary, [...args, '--address', address], { cwd: folder })
      let [out, err] = ['', '']
      command.stdout.on('data', (chunk: Buffer) => {
        out += chunk.toString()
      })
      command.stderr.on('data', (chunk: Buffer) => {
        err += chunk.toString()
      })
      command.on('error', reject)
      command.on('exit', (code) => {
        if (code === 0) resolve(out)
        else reject(new Error(`signalbox ${args.join(' ')} exited with ${String(code)}: ${err}`))
      })
    })

  await boot()
  await until('the workflows are published', async () => (await cli('workflow', 'list')).includes('wait'))
  return {
    address,
    stock,
    mendStock: () => {
      mended.value = true
    },
    cli,
    start: async (workflow, input) => {
      const answer = await cli('run', 'start', workflow, '--input', JSON.stringify(input ?? null), '-o', 'json')
      return (JSON.parse(answer) as { id: string }).id
    },
    kill: async () => end('SIGKILL'),
    boot,
    stop: async () => {
      await end('SIGTERM')
      server.close()
      server.closeAllConnections()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface Servers {
  address: string
  /** A token of an administrator, and one of a viewer of the project `default`. */
  admin: string
  viewer: string
  revoke: (token: string) => Promise<void>
  stop: () => Promise<void>
}

/** startServer starts Temporal and a server with tokens as two processes, and creates two tokens. */
export async function startServer(): Promise<Servers> {
  const folder = mkdtempSync(join(tmpdir(), 'studio-'))
  const [port, temporalPort] = [await freePort(), await freePort()]
  const address = `http://127.0.0.1:${port}`
  const settings = {
    SIGNALBOX_LISTEN: `127.0.0.1:${port}`,
    SIGNALBOX_STORE_DRIVER: 'sqlite',
    SIGNALBOX_STORE_DSN: join(folder, 'signalbox.db'),
    SIGNALBOX_TEMPORAL_ADDRESS: `127.0.0.1:${temporalPort}`,
    SIGNALBOX_AUTH_MODE: 'tokens',
    SIGNALBOX_ENCRYPTION_KEYS: `first=${join(folder, 'signalbox.key')}`,
  }
  writeFileSync(join(folder, 'signalbox.key'), randomBytes(32).toString('base64'), { mode: 0o600 })
  const children: ChildProcess[] = []
  let log = ''
  const run = (args: string[], env: Record<string, string> = {}) => {
    const child = spawn(binary, args, {
      cwd: folder,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stderr.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-20_000)
    })
    return child
  }
  const output = async (args: string[], env: Record<string, string>) =>
    new Promise<string>((resolve, reject) => {
      const child = run(args, env)
      let out = ''
      child.stdout.on('data', (chunk: Buffer) => {
        out += chunk.toString()
      })
      child.on('error', reject)
      child.on('exit', (code) => {
        if (code === 0) resolve(out.trim())
        else reject(new Error(`signalbox ${args.join(' ')} exited with ${String(code)}: ${log}`))
      })
    })
  children.push(run(['dev', 'temporal', '--port', String(temporalPort)]))
  await output(['migrate', 'up'], settings)
  const admin = await output(['token', 'create', '--bootstrap', '--name', 'ada'], settings)
  children.push(run(['server'], settings))
  await until(
    'the server is ready',
    async () => {
      if (children.some((child) => child.exitCode !== null)) throw new Error(`a process exited: ${log}`)
      return (await fetch(`${address}/readyz`)).ok
    },
    60_000,
  )
  const viewer = await output(['token', 'create', '--name', 'vera', '--role', 'default=viewer', '--address', address], {
    SIGNALBOX_TOKEN: admin,
  })
  return {
    address,
    admin,
    viewer,
    revoke: async (token) => {
      const { tokens } = JSON.parse(
        `{"tokens":${await output(['token', 'list', '-o', 'json', '--address', address], { SIGNALBOX_TOKEN: admin })}}`,
      ) as { tokens: { id: string }[] }
      const id = tokens.find((t) => token.includes(`_${t.id}_`))?.id ?? ''
      await output(['token', 'revoke', id, '--reason', 'a test', '--address', address], { SIGNALBOX_TOKEN: admin })
    },
    stop: async () => {
      for (const child of children.reverse()) {
        if (child.exitCode !== null || child.signalCode !== null) continue
        const ended = new Promise((resolve) => child.once('exit', resolve))
        child.kill('SIGTERM')
        await ended
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** seedFunctions publishes two functions, and a workflow that calls one of them. */
export async function seedFunctions(platform: Platform): Promise<void> {
  const price = join(here, 'functions/price.yaml')
  for (const name of ['price:1.0.0', 'price:1.1.0', `a-function-${'with-a-long-name-'.repeat(3)}x:1.0.0`])
    await platform.cli('function', 'publish', name, price)
  await platform.cli('workflow', 'publish', join(here, 'functions/quote.yaml'))
}

/** seed makes runs of all kinds and waits until each is where it belongs. It returns their IDs by what they are. */
export async function seed(platform: Platform): Promise<Record<string, string>> {
  const order = (number: string, sku: string, more: object = {}) => ({
    order: number,
    items: [
      { sku: 'lamp', count: 2 },
      { sku, count: 1 },
    ],
    base: platform.stock,
    ...more,
  })
  const ids: Record<string, string> = {
    completed: await platform.start('order', order('A-1', 'chair')),
    failed: await platform.start('order', order('A-2', 'gone-table', { password: 'secret-word' })),
    failedAgain: await platform.start('order', order('A-3', 'gone-table')),
    broken: await platform.start('order', order('A-4', 'broken-shelf')),
    waiting: await platform.start('wait'),
    listening: await platform.start('payment'),
    parallel: await platform.start('parallel'),
    long: await platform.start('long', { count: 400 }),
    canceled: await platform.start('wait'),
    script: await platform.start('script', { password: 'secret-word' }),
  }
  await platform.cli('run', 'cancel', ids.canceled ?? '', '--reason', 'not needed')
  await seedFunctions(platform)
  await platform.cli('webhook', 'create', 'audit', '--url', `${platform.stock}/stock/audit?key=hidden`, '--type', '*')
  await platform.cli(
    'webhook',
    'create',
    'pager',
    '--format',
    'alertmanager',
    '--url',
    `${platform.stock}/stock/broken-pager`,
    '--type',
    'com.example.*',
    '--with',
    '{"source":"/shop"}',
  )
  await platform.cli('event', 'send', '--type', 'com.example.placed', '--source', '/shop', '--data', '{"order":"A-9"}')
  await platform.cli('event', 'send', '--type', 'com.example.unrelated', '--source', '/shop', '--data', '{"n":1}')
  const status = async (id: string | undefined) =>
    (JSON.parse(await platform.cli('run', 'show', id ?? '', '-o', 'json')) as { status: string }).status
  for (const [name, wanted] of [
    ['completed', 'completed'],
    ['failed', 'failed'],
    ['failedAgain', 'failed'],
    ['waiting', 'waiting'],
    ['listening', 'waiting'],
    ['parallel', 'completed'],
    ['long', 'completed'],
    ['canceled', 'canceled'],
    ['script', 'completed'],
  ] as const) {
    await until(`run ${name} is ${wanted}`, async () => (await status(ids[name])) === wanted, 60_000)
  }
  ids.delivery = await until('a delivery has failed', async () => {
    const [delivery] = JSON.parse(await platform.cli('webhook', 'deliveries', 'pager', '-o', 'json')) as {
      id: string
      attempts?: number
    }[]
    return (delivery?.attempts ?? 0) > 0 && delivery?.id
  })
  return ids
}
