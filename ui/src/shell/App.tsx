import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { useState } from 'react'
import { isRepeatable, retryDelay } from '../api'
import { Toasts, TooltipProvider } from '../kit'
import { newRouter } from './router'

const newQueryClient = () =>
  new QueryClient({
    defaultOptions: {
      queries: {
        // A browser that believes to be offline may still reach a server on its own machine.
        networkMode: 'always',
        staleTime: 2_000,
        refetchOnWindowFocus: true,
        retry: isRepeatable,
        retryDelay: (attempt) => retryDelay(attempt + 1, Math.random()),
      },
      mutations: { retry: false, networkMode: 'always' },
    },
  })

export function App() {
  const [client] = useState(newQueryClient)
  const [router] = useState(() => {
    const created = newRouter(client)
    // The code of the page is requested before the frame is drawn, not after.
    void created.preloadRoute({ to: window.location.pathname })
    return created
  })
  return (
    <QueryClientProvider client={client}>
      <TooltipProvider>
        <RouterProvider router={router} />
        <Toasts />
      </TooltipProvider>
    </QueryClientProvider>
  )
}
