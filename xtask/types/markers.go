package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
)

// The `+name=value` markers in the comments of the packages that define the types.
type markers struct {
	packages map[string]map[string]map[string]string
}

func newMarkers() *markers {
	return &markers{packages: map[string]map[string]map[string]string{}}
}

func (m *markers) ofType(of reflect.Type) map[string]string {
	return m.get(of.PkgPath(), of.Name())
}

func (m *markers) ofField(of reflect.Type, field string) map[string]string {
	return m.get(of.PkgPath(), of.Name()+"."+field)
}

func (m *markers) get(path, name string) map[string]string {
	if path == "" {
		return map[string]string{}
	}
	if _, read := m.packages[path]; !read {
		m.packages[path] = readPackage(path)
	}
	found := map[string]string{}
	for key, value := range m.packages[path][name] {
		found[key] = value
	}
	return found
}

func readPackage(path string) map[string]map[string]string {
	directory, err := exec.Command("go", "list", "-f", "{{.Dir}}", path).Output()
	check(err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(directory)), "*.go"))
	check(err)
	found := map[string]map[string]string{}
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		check(err)
		readFile(parsed, found)
	}
	return found
}

func readFile(file *ast.File, found map[string]map[string]string) {
	end := file.Name.End()
	for _, declaration := range file.Decls {
		general, isGeneral := declaration.(*ast.GenDecl)
		if !isGeneral || general.Tok != token.TYPE {
			end = declaration.End()
			continue
		}
		for _, spec := range general.Specs {
			named := spec.(*ast.TypeSpec)
			found[named.Name.Name] = between(file, end, named.Pos())
			if fields, isStruct := named.Type.(*ast.StructType); isStruct {
				readFields(file, named.Name.Name, fields, found)
			}
			end = named.End()
		}
	}
}

func readFields(file *ast.File, of string, fields *ast.StructType, found map[string]map[string]string) {
	end := fields.Fields.Opening
	for _, field := range fields.Fields.List {
		marks := between(file, end, field.Type.Pos())
		for _, name := range field.Names {
			found[of+"."+name.Name] = marks
		}
		end = field.End()
	}
}

// Markers count wherever they stand between the item before and this one.
func between(file *ast.File, from, to token.Pos) map[string]string {
	marks := map[string]string{}
	for _, group := range file.Comments {
		if group.Pos() < from || group.End() > to {
			continue
		}
		for _, comment := range group.List {
			text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			name, value, hasValue := strings.Cut(strings.TrimPrefix(text, "+"), "=")
			if !strings.HasPrefix(text, "+") || !hasValue {
				continue
			}
			if name == "listMapKey" && marks[name] != "" {
				value = marks[name] + "+" + value
			}
			marks[name] = strings.TrimSpace(value)
		}
	}
	return marks
}
