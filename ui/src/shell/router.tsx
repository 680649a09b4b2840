import type { QueryClient } from '@tanstack/react-query'
import {
  type ErrorComponentProps,
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router'
import { callError, clients } from '../api'
import { parseSearch, type Search, stringifySearch } from '../app/search'
import { Button, currentPreferences, Page, StateView } from '../kit'
import { AppShell } from './AppShell'

interface Context {
  queries: QueryClient
}

const root = createRootRouteWithContext<Context>()({
  component: AppShell,
  notFoundComponent: NotFound,
  errorComponent: Broken,
})

function NotFound() {
  return (
    <Page title="Not found">
      <StateView kind="denied" title="There is no page at this address.">
        Check the address, or go on from the navigation.
      </StateView>
    </Page>
  )
}

function Broken({ error, reset }: ErrorComponentProps) {
  return (
    <Page title="Error">
      <StateView kind="error" title="This page failed." actions={<Button onClick={reset}>Try again</Button>}>
        {error instanceof Error ? error.message : 'unknown error'}
      </StateView>
    </Page>
  )
}

/** The values in the URL are read by the pages themselves; here they pass as text. */
const validateSearch = (search: Record<string, unknown>): Search => search as Search

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: async ({ context }) => {
    const { firstProject } = await import('../app/project')
    let project: string
    try {
      project = await firstProject(context.queries, clients)
    } catch (error) {
      if (callError(error).kind === 'signed-out') throw redirect({ to: '/sign-in', search: { next: '/' } as never })
      project = currentPreferences().project // its page shows what is wrong, and recovers by itself
    }
    throw project === '' ? redirect({ to: '/projects' }) : redirect({ to: '/p/$project/runs', params: { project } })
  },
})

const project = createRoute({ getParentRoute: () => root, path: '/p/$project' })

const page = <P extends string>(path: P, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({
    getParentRoute: () => project,
    path,
    validateSearch,
    component: lazyRouteComponent(load as () => Promise<Record<string, never>>, name as never),
  })

const top = <P extends string>(path: P, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({
    getParentRoute: () => root,
    path,
    validateSearch,
    component: lazyRouteComponent(load as () => Promise<Record<string, never>>, name as never),
  })

const tree = root.addChildren([
  home,
  project.addChildren([
    page('/runs', () => import('../runs'), 'RunsPage'),
    page('/runs/$id', () => import('../run'), 'RunPage'),
    page('/compare', () => import('../run'), 'ComparePage'),
    page('/workflows', () => import('../workflows'), 'WorkflowsPage'),
    page('/workflows/$namespace/$name', () => import('../workflows'), 'WorkflowPage'),
    page('/functions', () => import('../workflows'), 'FunctionsPage'),
    page('/functions/$name', () => import('../workflows'), 'FunctionPage'),
    page('/events', () => import('../events'), 'EventsPage'),
    page('/events/$position', () => import('../events'), 'EventPage'),
    page('/webhooks', () => import('../webhooks'), 'WebhooksPage'),
    page('/webhooks/$name', () => import('../webhooks'), 'WebhookPage'),
    page('/webhooks/$name/deliveries/$id', () => import('../webhooks'), 'DeliveryPage'),
    page('/batches', () => import('../batches'), 'BatchesPage'),
    page('/batches/$id', () => import('../batches'), 'BatchPage'),
    page('/audit', () => import('../audit'), 'AuditPage'),
  ]),
  top('/problems', () => import('../problems'), 'ProblemsPage'),
  top('/dispatchers', () => import('../dispatchers'), 'DispatchersPage'),
  top('/dispatchers/$project', () => import('../dispatchers'), 'DispatcherPage'),
  top('/workflows', () => import('../workflows'), 'AllWorkflowsPage'),
  top('/workers', () => import('../workers'), 'WorkersPage'),
  top('/system', () => import('../system'), 'SystemPage'),
  top('/system/restore', () => import('../system'), 'RestorePage'),
  top('/system/licences', () => import('../system'), 'LicencesPage'),
  top('/projects', () => import('../projects'), 'ProjectsPage'),
  top('/projects/$name', () => import('../projects'), 'ProjectPage'),
  top('/sign-in', () => import('../session'), 'SignInPage'),
  top('/access', () => import('../access'), 'AccessPage'),
])

/** newRouter returns the router of all pages. */
export const newRouter = (queries: QueryClient) =>
  createRouter({
    routeTree: tree,
    context: { queries },
    parseSearch,
    stringifySearch,
    scrollRestoration: true,
    defaultPreload: 'intent',
    defaultPendingMinMs: 0,
  })

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof newRouter>
  }
}
