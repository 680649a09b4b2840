package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
	"google.golang.org/grpc"
)

// Permissions restrict which calls of the frontend clients may make. The API key of a client is the name of its role.
type Permissions struct {
	// Roles has the calls of each role, such as "WorkflowService/StartWorkflowExecution". They apply to the server's
	// namespace; calls without a namespace, such as GetClusterInfo, are listed in the same way. The checks that Temporal's
	// own authorizer allows to everyone (Health/Check and GetSystemInfo) need no permission.
	Roles map[string][]string `yaml:"roles"`
}

// Validate returns an error if there is no role, or if a role has a call that the frontend does not have.
func (p *Permissions) Validate() error {
	if len(p.Roles) == 0 {
		return fmt.Errorf("there are no roles; it must have one list of calls for each role under the key roles")
	}
	known := map[string]bool{}
	for _, service := range []grpc.ServiceDesc{
		workflowservice.WorkflowService_ServiceDesc, operatorservice.OperatorService_ServiceDesc} {
		for _, method := range service.Methods {
			known[callName("/"+service.ServiceName+"/"+method.MethodName)] = true
		}
	}
	for role, calls := range p.Roles {
		for _, call := range calls {
			if !known[call] {
				return fmt.Errorf("role %q has the call %q, which Temporal does not have; a call is written as "+
					"WorkflowService/StartWorkflowExecution", role, call)
			}
		}
	}
	return nil
}

// callName removes the package of the service from the full name of a method.
func callName(method string) string { return method[strings.LastIndex(method, ".")+1:] }

// keyMapper takes the role from the API key of a call.
type keyMapper struct{}

var _ authorization.ClaimMapper = keyMapper{}

// GetClaims implements [authorization.ClaimMapper].
func (keyMapper) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	return &authorization.Claims{Subject: strings.TrimPrefix(info.AuthToken, "Bearer ")}, nil
}

// authorizer decides by the permissions, and logs the first of the calls with the same role, name and decision.
type authorizer struct {
	permissions *Permissions
	namespace   string
	log         *slog.Logger

	mu     sync.Mutex
	logged map[loggedCall]bool
}

type loggedCall struct {
	role, call, namespace string
	allowed               bool
}

var _ authorization.Authorizer = (*authorizer)(nil)

// Authorize implements [authorization.Authorizer].
func (a *authorizer) Authorize(
	ctx context.Context, caller *authorization.Claims, target *authorization.CallTarget,
) (authorization.Result, error) {
	if authorization.IsHealthCheckAPI(target.APIName) || caller != nil && caller.System == authorization.RoleAdmin {
		// The second are calls of the server itself, which the claim mapper of its internal frontend marks so.
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	c := loggedCall{call: callName(target.APIName), namespace: target.Namespace}
	if caller != nil {
		c.role = caller.Subject
	}
	c.allowed = (c.namespace == "" || c.namespace == a.namespace) && slices.Contains(a.permissions.Roles[c.role], c.call)
	a.report(ctx, c)
	if !c.allowed {
		return authorization.Result{Decision: authorization.DecisionDeny}, nil
	}
	return authorization.Result{Decision: authorization.DecisionAllow}, nil
}

func (a *authorizer) report(ctx context.Context, c loggedCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.logged[c] {
		return
	}
	a.logged[c] = true
	if c.allowed {
		a.log.InfoContext(ctx, "Call allowed", "role", c.role, "call", c.call)
		return
	}
	a.log.WarnContext(ctx, "Call refused: the permissions do not have it", "role", c.role, "call", c.call,
		"namespace", c.namespace)
}
