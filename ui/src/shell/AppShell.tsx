import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link as RouterLink, Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import {
  Activity,
  Boxes,
  ChevronDown,
  CircleUser,
  Cpu,
  FolderCog,
  Inbox,
  KeyRound,
  ListChecks,
  Menu as MenuIcon,
  Plug,
  Route,
  ScrollText,
  Search,
  Server,
  TriangleAlert,
  Webhook,
  Workflow,
  X,
  type LucideIcon,
} from 'lucide-react'
import { lazy, Suspense, useEffect, useState, type ReactNode } from 'react'
import {
  callError,
  clients,
  milliseconds,
  setCSRFToken,
  useConnection,
  useLink,
  useProblemCounts,
  useSignInNeeded,
} from '../api'
import { useCaller, useProject, useProjects } from '../app'
import {
  Button,
  Elapsed,
  formatCount,
  Menu,
  setPreferences,
  StaleNote,
  StatusBadge,
  Time,
  toastError,
  Tooltip,
  usePreferences,
} from '../kit'
import { StartDialog } from '../start'
import styles from './AppShell.module.css'
import { findable } from './find'
import { useKeys } from './keys'
import { MaintenanceNote } from './MaintenanceNote'
import { pathInProject, pathOf, type Place, sections } from './pages'

const Palette = lazy(() => import('./Palette'))
const SignInOverlay = lazy(async () => ({ default: (await import('../session')).SignInOverlay }))
const Shortcuts = lazy(() => import('./Shortcuts'))

/** The icons of the pages in the navigation, by their paths. */
const icons: Record<string, LucideIcon> = {
  '/problems': TriangleAlert,
  runs: Activity,
  workflows: Workflow,
  events: Inbox,
  webhooks: Webhook,
  batches: ListChecks,
  audit: ScrollText,
  '/dispatchers': Route,
  '/workers': Cpu,
  '/system': Server,
  '/projects': FolderCog,
  '/access': KeyRound,
}

/** The frame of every page: navigation, project, link state, palette, user menu. */
export function AppShell() {
  const project = useProject()
  const location = useLocation()
  const signInNeeded = useSignInNeeded()
  const [open, setOpen] = useState(false)
  const { daily, installation } = sections(project)
  const [overlay, setOverlay] = useState<'palette' | 'keys' | 'start' | ''>('')
  useKeys({
    palette: () => {
      setOverlay('palette')
    },
    help: () => {
      setOverlay('keys')
    },
  })
  useEffect(() => {
    setOpen(false)
  }, [location.pathname])

  return (
    <div className={styles.shell}>
      <a href="#content" className={styles.skip}>
        Skip to the content
      </a>
      <header className={styles.top}>
        <button
          type="button"
          className={styles.burger}
          aria-label={open ? 'Close the navigation' : 'Open the navigation'}
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          {open ? <X size={18} aria-hidden /> : <MenuIcon size={18} aria-hidden />}
        </button>
        <RouterLink to="/" className={styles.brand}>
          Signalbox
        </RouterLink>
        <ProjectSwitcher project={project} />
        <button type="button" className={styles.search} onClick={() => setOverlay('palette')}>
          <Search size={14} aria-hidden />
          <span className="hidden">Find: </span>
          <span className={styles.wide}>{findable}</span>
          <kbd className={styles.wide}>Ctrl-K</kbd>
        </button>
        <LinkState />
        <UserMenu onKeys={() => setOverlay('keys')} />
      </header>
      <nav className={`${styles.side} ${open ? styles.open : ''}`} aria-label="Pages">
        <NavList places={daily} project={project} />
        <div className={styles.heading}>Installation</div>
        <NavList places={installation} project={project} />
      </nav>
      <main id="content" className={styles.main} tabIndex={-1}>
        <StaleNote />
        <MaintenanceNote />
        <Outlet />
      </main>
      <Suspense>
        {signInNeeded && location.pathname !== '/sign-in' ? <SignInOverlay /> : null}
        {overlay === 'palette' ? (
          <Palette
            project={project}
            onClose={() => setOverlay('')}
            onStart={() => setOverlay('start')}
            onKeys={() => setOverlay('keys')}
          />
        ) : null}
        {overlay === 'start' ? <StartDialog project={project} onClose={() => setOverlay('')} /> : null}
        {overlay === 'keys' ? <Shortcuts onClose={() => setOverlay('')} /> : null}
      </Suspense>
    </div>
  )
}

function NavList({ places, project }: { places: Place[]; project: string }) {
  return (
    <ul>
      {places.map((place) => {
        const Icon = icons[place.path] ?? Activity
        return (
          <li key={place.path}>
            <RouterLink to={pathOf(place, project)} className={styles.link} activeProps={{ className: styles.current }}>
              <Icon size={16} aria-hidden /> {place.name}
              {place.path === '/problems' ? <OpenProblems /> : null}
            </RouterLink>
          </li>
        )
      })}
    </ul>
  )
}

/** The number of open problems in the caller's projects. */
function OpenProblems() {
  const counts = useProblemCounts('')
  const open = counts.data?.states.open ?? 0n
  return open === 0n ? null : (
    <span className={styles.badge}>
      {formatCount(open)}
      <span className="hidden"> open</span>
    </span>
  )
}

function ProjectSwitcher({ project }: { project: string }) {
  const projects = useProjects()
  const navigate = useNavigate()
  const { pathname } = useLocation()
  useEffect(() => {
    if (pathname.startsWith('/p/') && project !== '') setPreferences({ project })
  }, [pathname, project])
  const items = (projects.data ?? []).map((p) => ({
    key: p.name,
    label: p.name,
    checked: p.name === project,
    onSelect: () => void navigate({ to: pathInProject(pathname, p.name) }),
  }))
  return (
    <Menu
      align="start"
      trigger={
        <button type="button" className={styles.project}>
          <Boxes size={14} aria-hidden /> <span className="hidden">Project: </span>
          {project === '' ? 'No project' : project} <ChevronDown size={14} aria-hidden />
        </button>
      }
      items={
        items.length > 0
          ? items
          : [
              {
                label: projects.isPending ? 'Loading' : 'No project',
                refused: projects.isError
                  ? callError(projects.error).message
                  : 'An administrator creates projects on the page Projects.',
              },
            ]
      }
    />
  )
}

/** Two facts, never merged: the link from the browser to the server, and the server's connection to Temporal. */
function LinkState() {
  const link = useLink()
  const connection = useConnection().data
  const offset = Date.now() - performance.now()
  const words = { live: 'Live', reconnecting: 'Reconnecting', offline: 'Offline' }
  return (
    <div className={styles.states} role="status" aria-label="Connections">
      <Tooltip
        text={
          link.state === 'live'
            ? 'The server answers this browser.'
            : 'The server does not answer this browser; it is tried again by itself.'
        }
      >
        <span className={link.state === 'live' ? styles.good : styles.bad} tabIndex={0}>
          <Plug size={14} aria-hidden /> <span className={styles.wide}>Server: </span>
          {words[link.state]}
          {link.state === 'live' ? null : (
            <>
              {' '}
              <Elapsed from={offset + link.since} />
            </>
          )}
        </span>
      </Tooltip>
      <Tooltip
        text={
          connection === undefined ? (
            'The state of the connection to Temporal is not known here.'
          ) : (
            <>
              {connection.title === '' ? 'As seen by this server' : connection.title} since{' '}
              <Time at={milliseconds(connection.since)} />
            </>
          )
        }
      >
        <RouterLink to="/system" className={styles.state}>
          <span className={styles.wide}>Temporal: </span>
          {connection === undefined || link.state !== 'live' ? (
            <span className={styles.unknown}>
              <TriangleAlert size={14} aria-hidden /> Unknown
            </span>
          ) : (
            <StatusBadge of="connection" status={connection.state} />
          )}
        </RouterLink>
      </Tooltip>
    </div>
  )
}

function UserMenu({ onKeys }: { onKeys: () => void }) {
  const preferences = usePreferences()
  const caller = useCaller()
  const queries = useQueryClient()
  const name = caller.data?.actorName ?? ''
  const signOut = useMutation({
    mutationFn: () => clients.sessions.signOut({}),
    onSuccess: () => {
      // Nothing of the session stays in the page.
      queries.clear()
      setCSRFToken('')
      window.location.assign('/sign-in')
    },
    onError: toastError,
  })
  const choice = <K extends 'theme' | 'zone' | 'density'>(
    key: K,
    value: (typeof preferences)[K],
    label: ReactNode,
  ) => ({
    key: `${key}-${value}`,
    label,
    checked: preferences[key] === value,
    onSelect: () => setPreferences({ [key]: value }),
  })
  return (
    <Menu
      trigger={
        <Button
          kind="quiet"
          icon={<CircleUser size={16} aria-hidden />}
          aria-label={`Settings of ${name === '' ? 'this browser' : name}`}
        >
          <span className={styles.wide}>{name}</span>
        </Button>
      }
      items={[
        { kind: 'heading', label: 'Theme' },
        choice('theme', 'system', 'As the system'),
        choice('theme', 'light', 'Light'),
        choice('theme', 'dark', 'Dark'),
        { kind: 'heading', label: 'Times' },
        choice('zone', 'local', 'Local time'),
        choice('zone', 'utc', 'UTC'),
        { kind: 'heading', label: 'Rows' },
        choice('density', 'normal', 'Normal'),
        choice('density', 'compact', 'Compact'),
        { kind: 'separator', label: '' },
        {
          label: 'Shortcuts by keys',
          checked: preferences.shortcuts,
          onSelect: () => setPreferences({ shortcuts: !preferences.shortcuts }),
        },
        { label: 'Show the shortcuts', onSelect: onKeys },
        ...(caller.data?.authentication === 'session'
          ? [
              { kind: 'separator' as const, label: '' },
              {
                label: 'Sign out',
                onSelect: () => signOut.mutate(),
              },
            ]
          : []),
      ]}
    />
  )
}
