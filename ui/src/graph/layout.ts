import ELK from 'elkjs/lib/elk-api.js'
import workerUrl from 'elkjs/lib/elk-worker.min.js?url'
import { type Box, boxesOf, elkGraph } from './elk'
import type { Shape } from './model'

let elk: InstanceType<typeof ELK> | undefined

/** layout computes the boxes of all nodes, relative to their containers. It runs in a worker, so the page stays usable. */
export async function layout(graph: Shape): Promise<Map<string, Box>> {
  elk ??= new ELK({ workerUrl })
  return boxesOf(await elk.layout(elkGraph(graph)))
}
