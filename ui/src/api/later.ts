import type { DescService } from '@bufbuild/protobuf'
import { type Client, createClient } from '@connectrpc/connect'
import { transport } from './transport'

type Call = (...given: unknown[]) => unknown

/**
 * later returns the client of a service whose messages are loaded with the first call, so that pages that do not call it need not read
 * them. It is for services without streams.
 */
export function later<Service extends DescService>(load: () => Promise<Service>): Client<Service> {
  let client: Promise<Client<Service>> | undefined
  const loaded = () =>
    (client ??= load()
      .then((service) => createClient(service, transport))
      .catch((error: unknown) => {
        client = undefined // the next call tries again
        throw error
      }))
  const calls = new Map<string, Call>()
  return new Proxy({} as Client<Service>, {
    get: (_, method: string): Call => {
      const call =
        calls.get(method) ?? (async (...given) => ((await loaded()) as Record<string, Call>)[method]?.(...given))
      calls.set(method, call)
      return call
    },
  })
}
